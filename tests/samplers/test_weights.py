"""Importance weights: shares, steps and resampling against closed forms."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adance.samplers.resampling import (
    effective_sample_share,
    finite_sample_share,
    log_mean_exp,
    longest_step,
    resampled_rows,
)


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_share_of_weights_that_are_equal_on_some_rows_and_zero_elsewhere(rows):
    # (Σw)²/(M Σw²) of k equal weights is k/M, however large they are
    log_weights = torch.full((2 * rows,), -math.inf, dtype=torch.float64)
    log_weights[:rows] = 300.0
    assert effective_sample_share(log_weights).item() == pytest.approx(0.5)
    assert effective_sample_share(log_weights[:rows]).item() == pytest.approx(1.0)
    log_weights[-1] = math.nan
    assert finite_sample_share(log_weights).item() == pytest.approx(0.5)
    assert finite_sample_share(torch.full((rows,), math.nan)) == 0


def test_log_mean_exp_by_hand():
    value, error, effective = log_mean_exp(torch.tensor([1.0, 3.0], dtype=torch.float64).log() + 1000)
    assert value == pytest.approx(1000 + math.log(2))
    assert error == pytest.approx(0.5)  # sd √2 over √2 times mean 2
    assert effective == pytest.approx(16 / 10)
    assert math.isnan(log_mean_exp(torch.tensor([math.nan, 0.0]))[0])
    assert log_mean_exp(torch.tensor([math.inf, 0.0])).effective == 0
    assert log_mean_exp(torch.tensor([-math.inf, 0.0])).value == pytest.approx(-math.log(2))


@settings(deadline=None, max_examples=40)
@given(st.floats(0.2, 50), st.floats(0.02, 0.9), st.floats(0.01, 1))
def test_longest_step_is_where_the_share_of_two_weights_falls_to_the_bound(gap, bound, rest):
    # two rows of log-weights 0 and g·t have the share (1 + u)²/(2(1 + u²)), u = e^{gt}, which is (1 + b)/2 at
    # u = (1 + √(1 − b²))/b
    gain = torch.tensor([0.0, gap], dtype=torch.float64)
    right = math.log((1 + math.sqrt(1 - bound**2)) / bound) / gap
    found = longest_step(lambda t: bool(finite_sample_share(t * gain) >= (1 + bound) / 2), rest, 0.0, 40)
    assert found == pytest.approx(min(rest, right), rel=1e-6)


def test_a_step_is_never_shorter_than_the_shortest_nor_longer_than_the_rest():
    assert longest_step(lambda t: t == 0, 1.0, 0.01, 20) == 0.01
    assert longest_step(lambda t: t == 0, 0.004, 0.01, 20) == 0.004
    assert longest_step(lambda t: True, 0.7, 0.01, 20) == 0.7


def test_resampling_is_unbiased(generator):
    # Each of `trials` resamplings keeps row i either ⌊Mwᵢ⌋ or ⌈Mwᵢ⌉ times: a standard deviation of at most ½.
    x = torch.randn(12, 2, generator=generator)
    log_weights, trials = torch.randn(12, generator=generator), 4000
    expected = 12 * log_weights.double().softmax(0)
    counts = torch.stack(
        [resampled_rows(x, log_weights, generator).bincount(minlength=12) for _ in range(trials)]
    ).double()
    assert ((counts - expected).abs() < 1).all()
    assert (counts.mean(0) - expected).abs().max() < 5 * 0.5 / math.sqrt(trials)


def test_a_resampled_mean_is_the_weighted_mean(generator):
    # from N(0, 1) with weights of N(½, 1): M rows of an effective share e^{−¼} have that mean to √(e^{¼}·(1 + ¼)/M),
    # and systematic resampling adds about one row
    M = 20_000
    x = torch.randn(M, 1, generator=generator)
    rows = resampled_rows(x, 0.5 * x[:, 0] - 0.125, generator)
    assert abs(x[rows].mean() - 0.5) < 5 * math.sqrt(math.exp(0.25) * 1.25 / M)
