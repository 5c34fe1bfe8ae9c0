"""Resampling of the replay buffer."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adance.samplers import ReplayBuffer

N = 5000


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-30, 30), min_size=1, max_size=40), st.integers(0, 1000))
def test_each_chain_is_kept_as_its_weight_says_rounded_up_or_down(log_weights, seed):
    n = len(log_weights)
    buffer = ReplayBuffer(torch.arange(float(n))[:, None])
    log_weights = torch.tensor(log_weights)
    buffer.resample(log_weights, torch.Generator().manual_seed(seed))
    kept = buffer.samples[:, 0].long().bincount(minlength=n)
    assert ((kept - n * log_weights.double().softmax(0)).abs() < 1 + 1e-9).all()


@pytest.mark.parametrize("value", [0.0, 3.7, -1e4])
def test_equal_weights_keep_every_chain(value, generator):
    buffer = ReplayBuffer(torch.randn(N, 2))
    before = buffer.samples.clone()
    buffer.resample(torch.full((N,), value), generator)
    assert torch.equal(buffer.samples.sort(0).values, before.sort(0).values)


def test_chains_of_no_known_weight_are_dropped_and_without_any_nothing_is(generator):
    buffer = ReplayBuffer(torch.arange(4.0)[:, None])
    buffer.resample(torch.tensor([math.nan, 0.0, -math.inf, 0.0]), generator)
    assert buffer.samples[:, 0].sort().values.tolist() == [1, 1, 3, 3]
    buffer.resample(torch.full((4,), math.nan), generator)
    assert buffer.samples[:, 0].sort().values.tolist() == [1, 1, 3, 3]


def test_resampling_keeps_a_mode_s_weight_to_one_chain(generator):
    # weights that differ within the modes and not between them: multinomial draws would be off by √(N/4) = 35 chains,
    # systematic ones in the order of the buffer by several; modes that lie together in order by at most one a border
    buffer = ReplayBuffer(torch.randn(N, 2, generator=generator) + 20 * torch.randint(2, (N, 1), generator=generator))
    weights = 1 + 0.3 * torch.rand(N, generator=generator)
    right = buffer.samples[:, 0] > 10
    expected = N * float(weights[right].sum() / weights.sum())
    buffer.resample(weights.log(), generator)
    assert abs(int((buffer.samples[:, 0] > 10).sum()) - expected) < 2
