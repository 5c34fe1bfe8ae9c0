import math

import pytest
import torch

from adance.errors import InputError
from adance.evaluation import mode_coverage, sliced_wasserstein, squared_mmd, stein_discrepancy
from adance.evaluation.log_z import grid_log_z
from adance.evaluation.outliers import auroc


def test_mmd_by_hand():
    """k(0, 1) = e^{−½} = a, k(0, 2) = e^{−2} = b with h = 1: within a and b, across (1 + b + 2a)/4."""
    x, y = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [2.0]])
    a, b = math.exp(-0.5), math.exp(-2)
    assert squared_mmd(x, y, bandwidth=1.0) == pytest.approx(a + b - (1 + b + 2 * a) / 2)


def test_mmd_distinguishes_unequal_laws_only(generator):
    x, y = torch.randn(2, 500, 3, generator=generator)
    assert abs(squared_mmd(x, y)) < 0.01  # standard deviation about √2/500 under equal laws
    assert squared_mmd(x + 1, y) > 0.1


def test_sliced_wasserstein_of_a_shift_is_its_length_over_the_root_of_the_dimension(generator):
    """E (vᵀm)² = ‖m‖²/D; over 2,000 directions its error is √(2/2000)/… below 4 %."""
    y = torch.randn(300, 4, generator=generator)
    shift = torch.tensor([2.0, 0.0, 0.0, 0.0])
    value = sliced_wasserstein(y + shift, y, directions=2000, generator=generator)
    assert value == pytest.approx(1.0, rel=0.04)


def test_sliced_wasserstein_in_one_dimension_is_the_quantiles(generator):
    x = torch.randn(400, 1, generator=generator)
    assert sliced_wasserstein(3 * x, x) == pytest.approx(2 * float(x.square().mean().sqrt()), rel=0.02)
    assert sliced_wasserstein(x[torch.randperm(400, generator=generator)], x) == pytest.approx(0, abs=1e-6)


def stein_by_autograd(x, score, c2):
    """The Stein kernel of every pair, its derivatives by autograd."""
    total, n = 0.0, len(x)
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            a, b = x[i].clone().requires_grad_(), x[j].clone().requires_grad_()
            k = (1 + (a - b).square().sum() / c2) ** -0.5
            by_a, by_b = torch.autograd.grad(k, (a, b), create_graph=True)
            trace = sum(torch.autograd.grad(by_a[d], b, retain_graph=True)[0][d] for d in range(len(a)))
            total += float(score[i] @ score[j] * k + score[i] @ by_b + score[j] @ by_a + trace)
    return total / (n * (n - 1))


def test_stein_discrepancy_agrees_with_derivatives_by_autograd(generator):
    x = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    value = stein_discrepancy(lambda x: 0.5 * x.square().sum(1), x, temperature=0.5, scale=1.7)
    assert value == pytest.approx(stein_by_autograd(x, -x / 0.5, 1.7**2), rel=1e-9)


def test_stein_discrepancy_distinguishes_samples_of_the_model(generator):
    x = torch.randn(1000, 3, generator=generator)
    assert abs(stein_discrepancy(lambda x: 0.5 * x.square().sum(1), x)) < 0.03
    assert stein_discrepancy(lambda x: 0.5 * x.square().sum(1), x + 1) > 0.5


def test_coverage_counts_the_modes_that_samples_reach(generator):
    modes = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    data = modes[torch.arange(2000) % 4] + 0.3 * torch.randn(2000, 2, generator=generator)
    assert mode_coverage(data, modes, data) == pytest.approx((1, 0.99, 0), abs=0.01)
    two = modes[torch.arange(1000) % 2] + 0.1 * torch.randn(1000, 2, generator=generator)
    two[:100] = 5.0
    assert mode_coverage(two, modes, data) == pytest.approx((0.5, 0.9, 0.5))


def test_metrics_of_vectors_need_two_rows():
    with pytest.raises(InputError, match="at least 2 vectors"):
        squared_mmd(torch.zeros(1, 2), torch.zeros(5, 2))


def test_auroc_by_hand_and_with_ties():
    assert auroc(torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0])) == 1
    assert auroc(torch.tensor([0.0, 1.0]), torch.tensor([0.5])) == 0.5
    assert auroc(torch.tensor([1.0, 1.0]), torch.tensor([1.0])) == 0.5
    assert auroc(torch.tensor([0.0, 1.0, 2.0, 3.0]), torch.tensor([2.5, 1.0])) == pytest.approx((3 + 1.5) / 8)


def test_auroc_is_the_share_of_pairs_in_order(generator):
    a, b = torch.randn(200, generator=generator).round(decimals=1), torch.randn(300, generator=generator) + 0.7
    a[0], b[0] = torch.inf, torch.inf
    pairs = (b[:, None] > a).double() + 0.5 * (b[:, None] == a).double()
    assert auroc(a, b) == pytest.approx(float(pairs.mean()), rel=1e-12)


def test_grid_integral_of_a_correlated_gaussian():
    precision = torch.tensor([[2.0, 0.9], [0.9, 1.0]])
    mean = torch.tensor([3.0, -2.0])

    def energy(x):
        return 0.5 * ((x - mean) @ precision * (x - mean)).sum(1)

    for temperature in (1.0, 0.3):
        log_z, error = grid_log_z(energy, mean, torch.tensor([1.0, 1.5]), temperature)
        exact = math.log(2 * math.pi * temperature) - 0.5 * float(precision.logdet())
        assert log_z == pytest.approx(exact, abs=1e-5)  # energies are float32
        assert error < 1e-5
