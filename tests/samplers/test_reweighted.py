"""Chains that follow a changing law by Jarzynski weights."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from adance.energies import MLP, Gaussian
from adance.energies.conditional import Given
from adance.errors import InputError
from adance.noises import Snapshot
from adance.objectives import AdaNCE, MaximumLikelihood
from adance.samplers import MALA, ChainStarts, Gibbs, Langevin, ReplayBuffer

N = 5000


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-30, 30), min_size=1, max_size=40), st.integers(0, 1000))
def test_each_chain_is_kept_as_its_weight_says_rounded_up_or_down(log_weights, seed):
    n = len(log_weights)
    buffer = ReplayBuffer(torch.arange(float(n))[:, None])
    buffer.log_weights.copy_(torch.tensor(log_weights))
    share = buffer.log_weights.double().softmax(0)
    effective = buffer.resample(torch.Generator().manual_seed(seed))
    kept = buffer.samples[:, 0].long().bincount(minlength=n)
    assert ((kept - n * share).abs() < 1 + 1e-9).all()
    assert effective == pytest.approx(float(1 / (n * share.square().sum())), rel=1e-5)
    assert (buffer.log_weights == 0).all()


@pytest.mark.parametrize("value", [0.0, 3.7, -1e4])
def test_equal_weights_keep_every_chain(value, generator):
    buffer = ReplayBuffer(torch.randn(N, 2))
    before = buffer.samples.clone()
    buffer.log_weights.fill_(value)
    assert buffer.resample(generator) == pytest.approx(1)
    assert torch.equal(buffer.samples, before)


def test_chains_of_no_known_weight_are_dropped_and_without_any_nothing_moves(generator):
    buffer = ReplayBuffer(torch.arange(4.0)[:, None])
    buffer.log_weights.copy_(torch.tensor([math.nan, 0.0, -math.inf, 0.0]))
    buffer.resample(generator)
    assert buffer.samples[:, 0].tolist() == [1, 1, 3, 3]
    buffer.log_weights.fill_(math.nan)
    assert buffer.resample(generator) == pytest.approx(1)
    assert buffer.samples[:, 0].tolist() == [1, 1, 3, 3]


def test_gains_add_up_until_chains_are_resampled(generator):
    starts = ChainStarts("reweighted", capacity=N)
    starts.prepare(Gaussian(torch.zeros(1), torch.ones(1)), generator)
    x = starts.buffer.samples.clone()
    starts.reweight(lambda x: x[:, 0])
    starts.reweight(lambda x: 2 * x[:, 0])
    torch.testing.assert_close(starts.buffer.log_weights, 3 * x[:, 0])


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
    # systematic resampling adds no more than 1/N at each refresh to the error of the first, which is of N draws of
    # weights p/q with the fitted normal law q: √(E_q[(p/q)²]·p(1−p)/N), at most 0.05 here for E_q[(p/q)²] of 6
    assert (abs(found - 0.9) < 0.05) == (start == "reweighted")


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
    assert abs(x.var() - 0.25) < 5 * 0.25 * math.sqrt(2 / (0.4 * N))
    assert 0.4 < noise.metrics()["chain_share"] < 1


def test_a_pool_is_drawn_of_chains_resampled_once_a_refresh(generator):
    noise = Snapshot(MALA(2), ChainStarts("reweighted", capacity=64), 3, pool=16)
    data = torch.randn(50, 2, generator=generator)
    energy = MLP((2,), (8,))
    noise.prepare(energy, data, 8, generator)
    assert (noise.starts.buffer.log_weights != 0).any()
    noise.draw(8, data, generator)
    assert (noise.starts.buffer.log_weights == 0).all()
    for step in (1, 2):
        noise.after_step(MLP((2,), (8,)), step)
        assert (noise.starts.buffer.log_weights == 0).all()
    noise.after_step(MLP((2,), (8,)), 3)
    assert (noise.starts.buffer.log_weights != 0).any()


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
    assert (objective.noise.starts.kind, objective.init_args["start"]) == (kind, kind)
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


def test_a_kernel_that_does_not_suit_the_starts_is_refused_before_training():
    with pytest.raises(InputError, match="0 or 1"):
        AdaNCE(Gibbs(2), buffer=200).prepare(MLP((2,), (4,)), torch.randn(20, 2), 8)
