import warnings

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import nn

from adance.errors import InputError
from adance.evaluation import frechet_distance, kernel_distance
from adance.evaluation.inception import inception_score
from adance.evaluation.reference import Reference


class Given(nn.Module):
    num_features = 12

    def forward(self, x):
        return x


def frechet_by_roots(a, b):
    """tr (Σ₁Σ₂)^½ as the sum of singular values of Σ₁^½Σ₂^½: no eigenvalues of a product that is not symmetric."""
    roots = [np.real(scipy.linalg.sqrtm(np.cov(x.numpy().T))) for x in (a, b)]
    cross = np.linalg.svd(roots[0] @ roots[1], compute_uv=False).sum()
    mean = np.square(a.numpy().mean(0) - b.numpy().mean(0)).sum()
    return mean + np.trace(roots[0] @ roots[0]) + np.trace(roots[1] @ roots[1]) - 2 * cross


def kernel_by_sums(a, b):
    def k(x, y):
        return (x @ y.T / x.shape[1] + 1) ** 3

    n, m = len(a), len(b)
    within_a = (k(a, a).sum() - k(a, a).trace()) / (n * (n - 1))
    within_b = (k(b, b).sum() - k(b, b).trace()) / (m * (m - 1))
    return float(within_a + within_b - 2 * k(a, b).mean())


def test_frechet_distance_agrees_with_an_independent_formula(features):
    a, b = features
    assert frechet_distance(Reference.of(a), b) == pytest.approx(frechet_by_roots(a, b), rel=1e-6)


def test_frechet_distance_agrees_with_torchmetrics(features):
    from torchmetrics.image.fid import FrechetInceptionDistance

    a, b = features
    metric = FrechetInceptionDistance(feature=Given()).set_dtype(torch.float64)
    metric.update(a, real=True)
    metric.update(b, real=False)
    assert frechet_distance(Reference.of(a), b) == pytest.approx(float(metric.compute()), rel=1e-6)


def test_frechet_distance_does_not_lose_digits_to_a_large_mean(features):
    a, b = features
    moved = frechet_distance(Reference.of(a + 1e6), b + 1e6)
    assert moved == pytest.approx(frechet_by_roots(a, b), rel=1e-6)


def test_frechet_distance_of_a_set_with_itself_is_zero(features):
    a, _ = features
    assert frechet_distance(Reference.of(a), a) == pytest.approx(0, abs=1e-6)


def test_frechet_distance_of_shifted_gaussians_is_the_squared_shift(features):
    a, _ = features
    shift = torch.arange(12, dtype=torch.float64)
    assert frechet_distance(Reference.of(a), a + shift) == pytest.approx(float(shift.square().sum()), rel=1e-6)


def test_frechet_distance_of_few_rows_is_finite_real_and_warns(generator):
    x = torch.randn(100, 2048, generator=generator)  # the shift alone: the singular covariances are equal
    with pytest.warns(UserWarning, match="n = 100 events in d = 2048 features: n < d"):
        value = frechet_distance(Reference.of(x), x + 0.1)
    assert isinstance(value, float)
    assert value == pytest.approx(2048 * 0.01, rel=1e-3)


def test_frechet_distance_of_enough_rows_does_not_warn(features):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frechet_distance(Reference.of(features[0]), features[1])


def test_frechet_distance_needs_two_rows_and_the_same_features(features):
    reference = Reference.of(features[0])
    with pytest.raises(InputError, match="at least 2 samples"):
        frechet_distance(reference, features[1][:1])
    with pytest.raises(InputError, match=r"need \(n, 12\)"):
        frechet_distance(reference, features[1][:, :5])
    with pytest.raises(InputError, match="at least 2 rows for a covariance"):
        Reference.of(features[0][:1])


def test_kernel_distance_agrees_with_an_independent_formula(features):
    a, b = features[0][:500], features[1]
    mean, spread = kernel_distance(Reference.of(a), b)  # every subset is the whole set
    assert mean == pytest.approx(kernel_by_sums(a, b), rel=1e-6)
    assert spread == pytest.approx(0, abs=1e-6 * abs(mean))


def test_kernel_distance_agrees_with_torchmetrics(features):
    from torchmetrics.image.kid import KernelInceptionDistance

    reference = Reference.of(features[0])
    torch.manual_seed(4)
    metric = KernelInceptionDistance(feature=Given(), subsets=5, subset_size=100).set_dtype(torch.float64)
    metric.update(reference.rows, real=True)
    metric.update(features[1], real=False)
    mean, spread = metric.compute()
    ours = kernel_distance(reference, features[1], subsets=5, subset_size=100, seed=4)
    assert ours == pytest.approx((float(mean), float(spread)), rel=1e-6)


def score_by_entropies(log_probabilities):
    """exp(H(p(y)) − E H(p(y|x)))."""
    p = log_probabilities.exp()
    marginal = p.mean(0)
    return float(torch.exp(-(marginal * marginal.log()).sum() + (p * log_probabilities).sum(1).mean()))


def test_inception_score_agrees_with_an_independent_formula(generator):
    log_p = (3 * torch.randn(203, 10, generator=generator, dtype=torch.float64)).log_softmax(1)
    assert inception_score(log_p, splits=1)[0] == pytest.approx(score_by_entropies(log_p), rel=1e-6)


def test_inception_score_agrees_with_torchmetrics(generator):
    from torchmetrics.image.inception import InceptionScore

    log_p = torch.randn(200, 12, generator=generator, dtype=torch.float64).log_softmax(1)
    torch.manual_seed(7)
    metric = InceptionScore(feature=Given(), splits=10).set_dtype(torch.float64)
    metric.update(log_p[torch.randperm(200)])
    mean, spread = metric.compute()
    assert inception_score(log_p, seed=7) == pytest.approx((float(mean), float(spread)), rel=1e-6)


def test_inception_score_spans_one_to_the_number_of_classes():
    sure = torch.full((100, 10), -1000.0).scatter(1, torch.arange(100)[:, None] % 10, 0.0)
    assert inception_score(sure, splits=1)[0] == pytest.approx(10)
    assert inception_score(torch.zeros(100, 10), splits=10) == pytest.approx((1, 0))


def test_inception_score_takes_the_given_number_of_parts():
    """12 rows in 10 parts are 10 parts of one row, each of score 1; chunks of two would score more."""
    log_p = torch.full((12, 10), -1000.0).scatter(1, torch.arange(12)[:, None] % 10, 0.0)
    assert inception_score(log_p, splits=10) == pytest.approx((1, 0))


def test_inception_score_of_seven_images_in_ten_splits_is_an_error():
    with pytest.raises(InputError, match="cannot split 7 images into 10 parts"):
        inception_score(torch.zeros(7, 10), splits=10)


def test_no_metric_uses_the_global_generator(features):
    before = torch.get_rng_state()
    kernel_distance(Reference.of(features[0]), features[1])
    inception_score(features[0])
    assert torch.equal(torch.get_rng_state(), before)
