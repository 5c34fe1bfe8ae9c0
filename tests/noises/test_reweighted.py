"""Chains that follow a changing law by Jarzynski weights."""

import math
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from adance.energies import MLP, Gaussian
from adance.energies.conditional import Given
from adance.errors import InputError
from adance.noises import Snapshot
from adance.noises.following import follow
from adance.objectives import AdaNCE, MaximumLikelihood
from adance.samplers import MALA, Annealed, ChainStarts, Gibbs, Langevin, ReplayBuffer, Tempering

N = 5000


class Wells(nn.Module):
    """Two wells 20 apart, the right one of the weight ``right``: no chain crosses."""

    def __init__(self, right):
        super().__init__()
        self.right = nn.Parameter(torch.tensor(right))

    def forward(self, x):
        wells = torch.cat([-0.5 * (x + 10).square(), -0.5 * (x - 10).square()], 1)
        return -(wells + torch.stack([1 - self.right, self.right]).log()).logsumexp(1)


@pytest.mark.parametrize("start", ["reweighted", "persistent"])
def test_the_weights_of_modes_follow_the_model_though_no_chain_crosses(start, generator):
    noise = Snapshot(MALA(5), ChainStarts(start, capacity=N), 1, pool=0)
    data = torch.cat([torch.randn(50, 1) - 10, torch.randn(50, 1) + 10])
    noise.prepare(Wells(0.5), data, N, generator)
    noise.draw(N, data, generator)
    for step, right in enumerate((0.6, 0.7, 0.8, 0.9), 1):
        noise.after_step(Wells(right), step)
        found = (noise.draw(N, data, generator) > 0).float().mean()
    # the first weighting, of N draws of the fitted normal law q, has a standard error of √(E_q[(p/q)²]·¼/N), at most
    # 0.02 for E_q[(p/q)²] of 6; those that follow add about a chain each
    assert (abs(found - 0.9) < 0.06) == (start == "reweighted")


def test_a_buffer_follows_a_law_that_shrinks_without_moving(generator):
    noise = Snapshot(MALA(1, step_size=1e-9), ChainStarts("reweighted", capacity=N), 1, pool=0)
    data = torch.randn(500, 1, generator=generator)

    class Normal(nn.Module):
        def __init__(self, precision):
            super().__init__()
            self.precision = nn.Parameter(torch.tensor(precision))

        def forward(self, x):
            return 0.5 * self.precision * x.square().sum(1)

    noise.prepare(Normal(1.0), data, 100, generator)
    noise.draw(100, data, generator)
    for step, precision in enumerate((1.5, 2.0, 3.0, 4.0), 1):
        noise.after_step(Normal(precision), step)
        noise.draw(100, data, generator)
    # of N draws weighted to effective shares of at least 0.4: five standard deviations of a variance of ¼
    x = noise.starts.buffer.samples
    assert noise.metrics()["energy_gradients"] == 5 * 100 * 2
    assert abs(x.var() - 0.25) < 5 * 0.25 * math.sqrt(2 / (0.4 * N))
    assert 0.4 < noise.metrics()["chain_share"] < 1


def test_the_buffer_follows_once_a_refresh_and_never_between(generator):
    noise = Snapshot(MALA(2), ChainStarts("reweighted", capacity=64), 3, pool=16)
    data = torch.randn(50, 2, generator=generator)
    noise.prepare(MLP((2,), (8,)), data, 8, generator)
    shares = []
    for step in range(1, 8):
        noise.draw(8, data, generator)
        shares.append(float(noise.metrics()["chain_share"]))
        noise.after_step(MLP((2,), (8,)), step)
    assert shares[0] == shares[1] == shares[2] != shares[3]
    assert shares[3] == shares[4] == shares[5] != shares[6]
    assert all(0 < share < 1 for share in shares)


def test_following_is_timed_with_the_chains_that_come_of_it(generator):
    """Both spend gradients, and rates are gradients over time."""
    noise = Snapshot(MALA(2), ChainStarts("reweighted", capacity=64), 1, pool=16)
    data = torch.randn(50, 2, generator=generator)
    noise.prepare(MLP((2,), (8,)), data, 8, generator)
    shares = []

    @contextmanager
    def timed():
        before = float(noise.metrics()["chain_share"])
        yield
        shares.append((before, float(noise.metrics()["chain_share"])))

    noise.around_chains = timed
    noise.draw(8, data, generator)
    ((before, after),) = shares
    assert before == 1 > after


@pytest.mark.parametrize("shift", [2.0, 8.0])
def test_a_far_law_is_reached_in_parts(shift, generator):
    """From N(0, 1) to N(shift, ½²) in two axes, where weighting at once would leave next to nothing."""
    start, target = Gaussian(torch.zeros(2), torch.ones(2)), Gaussian(torch.full((2,), shift), torch.full((2,), 0.5))
    buffer = ReplayBuffer(start.sample(N, generator))
    found = follow(buffer, start.log_prob, target.log_prob, MALA(10, step_size=0.1), generator)
    assert found.share < 0.1
    assert found.gradients > 0
    # of at least a tenth of the chains that are independent: five standard errors
    error = 5 / math.sqrt(N / 10)
    assert (buffer.samples.mean(0) - shift).abs().max() < 0.5 * error
    assert (buffer.samples.var(0) / 0.25 - 1).abs().max() < math.sqrt(2) * error
    assert len(buffer.samples.unique(dim=0)) > N / 3


def test_a_near_law_takes_no_steps(generator):
    law, near = Gaussian(torch.zeros(2), torch.ones(2)), Gaussian(torch.full((2,), 0.3), torch.ones(2))
    buffer = ReplayBuffer(law.sample(N, generator))
    before = {tuple(row) for row in buffer.samples.tolist()}
    found = follow(buffer, law.log_prob, near.log_prob, MALA(10), generator)
    assert (found.gradients, found.step_size) == (0, None)
    assert {tuple(row) for row in buffer.samples.tolist()} <= before
    # the share of N(m, 1) weighted to N(m + δ, 1) is e^{−|δ|²}, here e^{−0.18}
    assert found.share == pytest.approx(math.exp(-0.18), abs=0.03)


def test_laws_without_any_common_ground_end_all_the_same(generator):
    buffer = ReplayBuffer(torch.zeros(20, 1))
    follow(buffer, lambda x: x[:, 0], lambda x: torch.full((len(x),), -math.inf), MALA(1), generator)
    assert (buffer.samples == 0).all()


def test_broken_chains_are_put_back_where_they_started(generator):
    starts = ChainStarts("reweighted", capacity=10)
    starts.prepare(Gaussian(torch.zeros(1), torch.ones(1)), generator)
    x = starts.draw(10, generator=generator)
    finite = torch.arange(10) % 2 == 0
    back = starts.take_back(torch.full((10, 1), 7.0), finite, generator)
    assert torch.equal(back, torch.where(finite[:, None], 7.0, x))


@pytest.mark.parametrize(
    ("options", "event", "kind"),
    [
        ({}, (2,), "reweighted"),
        ({"sampler": Langevin(2, 0.1)}, (2,), "rejuvenated"),
        ({"rejuvenation": 0.1}, (2,), "rejuvenated"),
        ({"start": "persistent"}, (2,), "persistent"),
        ({}, (1, 4, 4), "rejuvenated"),
    ],
)
def test_vectors_with_exact_chains_are_reweighted_unless_told_otherwise(options, event, kind):
    objective = AdaNCE(**options, buffer=200)
    objective.prepare(MLP(event, (4,)), torch.rand(20, *event), 8)
    assert objective.noise.starts.kind == kind
    again = AdaNCE(**objective.init_args)
    again.prepare(MLP(event, (4,)), torch.rand(20, *event), 8)
    assert (again.noise.starts.kind, again.noise.starts.rejuvenation, again.temperature) == (
        kind,
        objective.noise.starts.rejuvenation,
        objective.temperature,
    )


class OfClass(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 1)

    def forward(self, x, z):
        return self.net(x).squeeze(1) * z[:, 0] + x.square().sum(1)


def test_conditional_energies_cannot_be_reweighted():
    x, energy = torch.randn(8, 2), Given(OfClass())
    energy.condition(torch.ones(8, 1))
    objective = AdaNCE(buffer=200)
    objective.prepare(energy, x, 8)
    assert objective.noise.starts.kind == "rejuvenated"
    for made in (AdaNCE(start="reweighted", buffer=200), MaximumLikelihood(start="reweighted", buffer=200)):
        with pytest.raises(InputError, match="reweighted"):
            made.prepare(energy, x, 8)


@pytest.mark.parametrize("sampler", [Langevin(2, 0.1), Tempering(MALA(2)), Annealed(MALA(2), temperature=(2, 1))])
def test_only_kernels_that_keep_their_law_can_be_reweighted(sampler):
    data = torch.randn(20, 2)
    AdaNCE(sampler, buffer=200).prepare(MLP((2,), (4,)), data, 8)
    for made in (AdaNCE, MaximumLikelihood):
        with pytest.raises(InputError, match="reweighted"):
            made(sampler, start="reweighted", buffer=200).prepare(MLP((2,), (4,)), data, 8)


def test_a_kernel_that_does_not_suit_the_starts_is_refused_before_training():
    with pytest.raises(InputError, match="0 or 1"):
        AdaNCE(Gibbs(2), buffer=200).prepare(MLP((2,), (4,)), torch.randn(20, 2), 8)
