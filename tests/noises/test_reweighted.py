"""Snapshot noises whose chains follow the model by Jarzynski weights."""

import math
from contextlib import contextmanager

import pytest
import torch
from snapshots import UNSEEN, snapshot
from torch import nn

from adance.energies import MLP
from adance.errors import InputError
from adance.objectives import AdaNCE, MaximumLikelihood, Setting
from adance.samplers import MALA, Annealed, ChainOptions, Gibbs, Langevin, Tempering

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
    data = torch.cat([torch.randn(50, 1) - 10, torch.randn(50, 1) + 10])
    noise = snapshot(Wells(0.5), data, MALA(5), batch=N, start=start, buffer=N, generator=generator)
    noise.sample(N, data, generator)
    for step, right in enumerate((0.6, 0.7, 0.8, 0.9), 1):
        noise.after_step(Wells(right), step, UNSEEN)
        found = (noise.sample(N, data, generator).x > 0).float().mean()
    # the first weighting, of N draws of the fitted normal law q, has a standard error of √(E_q[(p/q)²]·¼/N), at most
    # 0.02 for E_q[(p/q)²] of 6; those that follow add about a chain each
    assert (abs(found - 0.9) < 0.06) == (start == "reweighted")


def test_a_buffer_follows_a_distribution_that_shrinks_though_chains_hardly_move(generator):
    data = torch.randn(500, 1, generator=generator)

    class Normal(nn.Module):
        def __init__(self, precision):
            super().__init__()
            self.precision = nn.Parameter(torch.tensor(precision))

        def forward(self, x):
            return 0.5 * self.precision * x.square().sum(1)

    sampler, settings = MALA(1, step_size=1e-9), {"start": "reweighted", "buffer": N, "generator": generator}
    noise = snapshot(Normal(1.0), data, sampler, batch=100, **settings)
    noise.sample(100, data, generator)
    for step, precision in enumerate((1.5, 2.0, 3.0, 4.0), 1):
        noise.after_step(Normal(precision), step, UNSEEN)
        noise.sample(100, data, generator)
    # of N draws weighted to effective shares of at least 0.4: five standard deviations of a variance of ¼
    x = noise.chains.starts.buffer.samples
    assert abs(x.var() - 0.25) < 5 * 0.25 * math.sqrt(2 / (0.4 * N))
    assert 0.4 < noise.metrics()["chain_share"] < 1


def test_the_buffer_follows_once_a_refresh_and_never_between(generator):
    data, settings = torch.randn(50, 2, generator=generator), {"interval": 3, "pool": 16, "buffer": 64}
    noise = snapshot(MLP((2,), (8,)), data, MALA(2), start="reweighted", generator=generator, **settings)
    shares = []
    for step in range(1, 8):
        noise.sample(8, data, generator)
        shares.append(float(noise.metrics()["chain_share"]))
        noise.after_step(MLP((2,), (8,)), step, UNSEEN)
    assert shares[0] == shares[1] == shares[2] != shares[3]
    assert shares[3] == shares[4] == shares[5] != shares[6]
    assert all(0 < share < 1 for share in shares)


def test_following_is_timed(generator):
    """It spends gradients, and rates are gradients over time."""
    data, shares = torch.randn(50, 2, generator=generator), []

    @contextmanager
    def timed():
        before = float(noise.metrics()["chain_share"])
        yield
        shares.append((before, float(noise.metrics()["chain_share"])))

    settings = {"start": "reweighted", "pool": 16, "buffer": 64, "options": ChainOptions(timer=timed)}
    noise = snapshot(MLP((2,), (8,)), data, MALA(2), generator=generator, **settings)
    noise.sample(8, data, generator)
    ((before, after),) = shares
    assert before == 1 > after


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
    recipe = AdaNCE(**options, buffer=200)
    resolved = recipe.resolve(Setting(event, 8))
    objective, again = (
        made.build(MLP(event, (4,)), torch.rand(20, *event), batch_size=8)
        for made in (recipe, AdaNCE(**resolved.init_args))
    )
    starts, same = objective.noise.chains.starts, again.noise.chains.starts
    assert starts.kind == resolved.start == same.kind == kind
    assert starts.rejuvenation == resolved.rejuvenation == same.rejuvenation
    assert objective.temperature == again.temperature
    assert resolved.ratio_temperature == ("auto" if len(event) > 1 else objective.temperature)


class OfClass(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 1)

    def forward(self, x, condition):
        return self.net(x).squeeze(1) * condition[:, 0] + x.square().sum(1)


def test_conditional_energies_cannot_be_reweighted():
    x, energy, condition = torch.randn(8, 2), OfClass(), torch.ones(1, 1)
    objective = AdaNCE(buffer=200).build(energy, x, condition=condition)
    assert objective.noise.chains.starts.kind == "rejuvenated"
    for made in (AdaNCE(start="reweighted", buffer=200), MaximumLikelihood(start="reweighted", buffer=200)):
        with pytest.raises(InputError, match="reweighted"):
            made.build(energy, x, condition=condition)


@pytest.mark.parametrize("sampler", [Langevin(2, 0.1), Tempering(MALA(2)), Annealed(MALA(2), temperature=(2, 1))])
def test_only_kernels_that_keep_their_law_can_be_reweighted(sampler):
    data = torch.randn(20, 2)
    AdaNCE(sampler, buffer=200).build(MLP((2,), (4,)), data, batch_size=8)
    for made in (AdaNCE, MaximumLikelihood):
        with pytest.raises(InputError, match="reweighted"):
            made(sampler, start="reweighted", buffer=200).build(MLP((2,), (4,)), data, batch_size=8)


def test_a_kernel_that_does_not_suit_the_starts_is_refused_before_training():
    with pytest.raises(InputError, match="0 or 1"):
        AdaNCE(Gibbs(2), buffer=200).build(MLP((2,), (4,)), torch.randn(20, 2), batch_size=8)


def test_batches_are_drawn_from_all_chains_with_energies_that_are_known(generator):
    data, energy = torch.randn(50, 2, generator=generator), MLP((2,), (8,))
    noise = snapshot(energy, data, MALA(2), start="reweighted", pool=16, buffer=64, generator=generator)
    batches = [noise.sample(8, data, generator) for _ in range(8)]
    drawn = torch.cat([batch.x for batch in batches])
    buffer = noise.chains.starts.buffer.samples
    assert {tuple(row) for row in drawn.tolist()} == {tuple(row) for row in buffer.tolist()}
    for batch in batches:
        both = torch.cat([data, batch.x])
        torch.testing.assert_close(noise.energy(both, batch), energy(both).detach())
