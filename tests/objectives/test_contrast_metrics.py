import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adance.objectives.metrics import auc
from adance.samplers.resampling import effective_sample_share

NUMBERS = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=8)


@settings(deadline=None, max_examples=30)
@given(NUMBERS, NUMBERS)
def test_auc_counts_pairs_in_order_and_ties_by_half(data, noise):
    pairs = [1.0 if d < n else 0.5 if d == n else 0.0 for d in data for n in noise]
    assert auc(torch.tensor(data), torch.tensor(noise)).item() == pytest.approx(sum(pairs) / len(pairs))


def test_auc_of_data_below_noise_is_one():
    assert auc(torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0])) == 1
    assert auc(torch.tensor([2.0, 3.0]), torch.tensor([0.0, 1.0])) == 0


@settings(deadline=None, max_examples=30)
@given(NUMBERS, st.floats(-500, 500))
def test_effective_share_is_the_formula_in_any_units(log_weights, shift):
    log_weights = torch.tensor(log_weights, dtype=torch.float64)
    weights = log_weights.exp()
    right = weights.sum() ** 2 / weights.square().sum() / len(weights)
    torch.testing.assert_close(effective_sample_share(log_weights + shift), right)


def test_effective_share_runs_from_one_of_m_to_all():
    assert effective_sample_share(torch.zeros(8)).item() == pytest.approx(1)
    assert effective_sample_share(torch.tensor([1e5, 0.0, 0.0, 0.0])).item() == pytest.approx(0.25)
