"""Distances between two sets of features, and the Inception score: torchmetrics' own, in float64, on given features."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from adance.errors import InputError
from adance.evaluation.reference import Reference
from adance.randomness import fork_rng

LEAST = -600.0
"""Least log-probability, still a number in float64 once it is exponentiated."""


class _Given(nn.Module):
    """Stands where torchmetrics wants a network: its input are the features ``(B, d)``."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.num_features = d

    def forward(self, features: Tensor) -> Tensor:
        return features


def frechet_distance(reference: Reference, features: Tensor) -> float:
    """The Fréchet distance of the normal laws with the moments of two sets of features (Heusel et al. 2017).

    ``‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2(Σ₁Σ₂)^½)``, covariances with n − 1. Below n = d a covariance is singular: the value
    is finite and real, but far above the distance of the laws.

    Args:
        reference: Of real data, d features.
        features: Of samples ``(n, d)``.

    Raises:
        InputError: Fewer than two samples, or another number of features.
    """
    from torchmetrics.image.fid import FrechetInceptionDistance

    n, d = _checked(features, reference)
    if n < 2:
        raise InputError(f"a Fréchet distance needs at least 2 samples, got {n}")
    if min(n, reference.n) < d:
        warnings.warn(
            f"Fréchet distance of n = {min(n, reference.n)} events in d = {d} features: n < d, so that a covariance is "
            "singular and the distance far too large; take more",
            stacklevel=2,
        )
    with _quiet():
        metric = FrechetInceptionDistance(feature=_Given(d)).set_dtype(torch.float64)
        # The distance does not change when both sets move, and centred sums lose no digits.
        metric.update(features.double() - reference.mean, real=False)
        metric.real_features_sum = torch.zeros(d, dtype=torch.float64)
        metric.real_features_cov_sum = (reference.n - 1) * reference.covariance
        metric.real_features_num_samples = torch.tensor(reference.n)
        return float(metric.compute())


def kernel_distance(
    reference: Reference, features: Tensor, *, subsets: int = 10, subset_size: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The kernel distance (KID, Bińkowski et al. 2018): squared MMD with kernel ``(xᵀy/d + 1)³``, unbiased.

    Its mean and standard deviation over ``subsets`` draws of ``subset_size`` rows (fewer where there are fewer) from
    each side. Unlike the Fréchet distance its expectation does not depend on n; it can be below 0.

    Raises:
        InputError: Fewer than two rows on one side, or another number of features.
    """
    from torchmetrics.image.kid import KernelInceptionDistance

    n, d = _checked(features, reference)
    size = min(subset_size, n, len(reference.rows))
    if size < 2:
        raise InputError(f"a kernel distance needs at least 2 samples, got {n}")
    with _quiet(), fork_rng(seed):
        metric = KernelInceptionDistance(feature=_Given(d), subsets=subsets, subset_size=size).set_dtype(torch.float64)
        metric.update(reference.rows.double(), real=True)
        metric.update(features.double(), real=False)
        mean, spread = metric.compute()
    return float(mean), float(spread)


def inception_score(log_probabilities: Tensor, *, splits: int = 10, seed: int = 0) -> tuple[float, float]:
    """``exp E_x KL(p(y|x) ‖ p(y))`` (thesis 5.2; Salimans et al. 2016), from 1 to the number of classes.

    Its mean and standard deviation over ``splits`` equal parts of the samples, in random order; samples beyond the
    last whole part are left out.

    Args:
        log_probabilities: log p(y|x) ``(n, classes)``; a constant in a row makes no difference.
        splits: Number of parts.
        seed: Seed of the order.

    Raises:
        InputError: Fewer samples than parts.
    """
    from torchmetrics.image.inception import InceptionScore

    n, classes = log_probabilities.shape
    if splits < 1 or n < splits:
        raise InputError(f"the score of {n} images cannot be taken in {splits} splits; give at least {splits} images")
    with _quiet(), fork_rng(seed):
        metric = InceptionScore(feature=_Given(classes), splits=splits).set_dtype(torch.float64)
        # A probability that underflows to 0 would make 0·∞ of its term.
        log_p = log_probabilities.double().log_softmax(1).clamp(min=LEAST)
        metric.update(log_p[torch.randperm(n)[: n - n % splits]])
        mean, spread = metric.compute()
    return float(mean), float(spread) if splits > 1 else 0.0


def _checked(features: Tensor, reference: Reference) -> tuple[int, int]:
    d = len(reference.mean)
    if features.ndim != 2 or features.shape[1] != d:
        raise InputError(f"features have shape {tuple(features.shape)}, but the reference's need (n, {d})")
    return len(features), d


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torchmetrics' warnings, which are about memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
