"""Metrics of features: the Fréchet distance (FID), the kernel distance (KID), and precision and recall.

torchmetrics computes the distances from features that are given, in float64, without its network or its warnings.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from adance.errors import InputError
from adance.evaluation.extractor import Extractor
from adance.evaluation.measurement import Measurement
from adance.evaluation.reference import MAX_ROWS, Reference
from adance.evaluation.sample_set import SampleSet, for_features
from adance.randomness import fork_rng

CHUNK = 2000
NEIGHBORS = 3


class GivenFeatures(nn.Identity):
    """Takes the place of torchmetrics' network: its inputs are the features ``(B, d)``."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.num_features = d


def check_features(features: Tensor, reference: Reference) -> tuple[int, int]:
    """Numbers of samples and of features in ``features`` ``(n, d)``.

    Raises:
        InputError: There are fewer than two samples, or the reference has another number of features.
    """
    d = len(reference.mean)
    if features.ndim != 2 or features.shape[1] != d:
        raise InputError(f"features have shape {tuple(features.shape)}, but the reference's need (n, {d})")
    if len(features) < 2:
        raise InputError(f"a distance of features needs at least 2 samples, got {len(features)}")
    return len(features), d


@contextmanager
def no_warnings() -> Iterator[None]:
    """Hide torchmetrics' warnings, which are about memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def frechet_distance(reference: Reference, features: Tensor) -> float:
    """The Fréchet distance of the normal laws with the moments of two sets of features (Heusel et al. 2017).

    ``‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2(Σ₁Σ₂)^½)``, covariances with n − 1. Below n = d a covariance is singular: the value
    is finite and real, but far above the distance of the laws, and there is a warning.

    Args:
        reference: Of real data, d features.
        features: Of samples ``(n, d)``.

    Raises:
        InputError: There are fewer than two samples, or the reference has another number of features.
    """
    from torchmetrics.image.fid import FrechetInceptionDistance

    n, d = check_features(features, reference)
    if min(n, reference.n) < d:
        warnings.warn(
            f"Fréchet distance of n = {min(n, reference.n)} events in d = {d} features: n < d, so that a covariance is "
            "singular and the distance far too large; take more",
            stacklevel=2,
        )
    with no_warnings():
        metric = FrechetInceptionDistance(feature=GivenFeatures(d)).set_dtype(torch.float64)
        # The distance does not change when both sets move, and centered sums lose no digits.
        metric.update(features.double() - reference.mean, real=False)
        metric.real_features_sum = torch.zeros(d, dtype=torch.float64)
        metric.real_features_cov_sum = (reference.n - 1) * reference.covariance
        metric.real_features_num_samples = torch.tensor(reference.n)
        return float(metric.compute())


@for_features
def measure_frechet(samples: SampleSet, extractor: Extractor, reference: Reference) -> list[Measurement]:
    """The Fréchet distance, with a note if there are too few samples for it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = frechet_distance(reference, samples.features)
    about = {"extractor": extractor.name, "n_reference": reference.n, "better": "lower"}
    note = "; ".join(str(warning.message) for warning in caught) or None
    return [samples.measurement("frechet_distance", extractor.distance_name, value, note=note, **about)]


def kernel_distance(
    reference: Reference, features: Tensor, *, subsets: int = 10, subset_size: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The kernel distance (KID, Bińkowski et al. 2018): squared MMD with kernel ``(xᵀy/d + 1)³``, unbiased.

    Its mean and standard deviation over ``subsets`` random sets of ``subset_size`` rows (fewer if there are fewer) from
    each side. Unlike the Fréchet distance its expectation does not depend on n; it can be below 0.

    Raises:
        InputError: There are fewer than two samples, or the reference has another number of features.
    """
    from torchmetrics.image.kid import KernelInceptionDistance

    n, d = check_features(features, reference)
    size = min(subset_size, n, len(reference.rows))
    with no_warnings(), fork_rng(seed):
        network = GivenFeatures(d)
        metric = KernelInceptionDistance(feature=network, subsets=subsets, subset_size=size).set_dtype(torch.float64)
        metric.update(reference.rows.double(), real=True)
        metric.update(features.double(), real=False)
        mean, spread = metric.compute()
    return float(mean), float(spread)


@for_features
def measure_kid(samples: SampleSet, extractor: Extractor, reference: Reference) -> list[Measurement]:
    """The kernel distance, mean and standard deviation over 10 subsets."""
    value, spread = kernel_distance(reference, samples.features, seed=samples.seed)
    about = {"extractor": extractor.name, "n_reference": len(reference.rows), "better": "lower"}
    return [samples.measurement("kernel_distance", extractor.label("kernel distance"), value, spread=spread, **about)]


def precision_and_recall(real: Tensor, generated: Tensor, k: int = NEIGHBORS) -> tuple[float, float]:
    """Share of samples inside the manifold of real data, and share of real data inside the manifold of samples.

    The manifold of a set is the union of balls around its points, each reaching to the point's k-th nearest neighbor
    in the set (the point itself not counted).

    Args:
        real: Features ``(m, d)``.
        generated: Features ``(n, d)``.
        k: Neighbors.

    Returns:
        Precision and recall, each in [0, 1].

    Raises:
        InputError: ``k`` is below 1, or a set has no k-th neighbor.
    """
    if k < 1 or min(len(real), len(generated)) <= k:
        raise InputError(
            f"precision and recall with k = {k} neighbors need more than {k} rows, "
            f"got {len(real)} real and {len(generated)} generated"
        )
    return _share_inside(generated, real, k), _share_inside(real, generated, k)


def _share_inside(points: Tensor, centers: Tensor, k: int) -> float:
    """Share of ``points`` in the manifold of ``centers``."""
    radii = _radii(centers, k)
    inside = [(torch.cdist(part, centers) <= radii).any(1) for part in torch.split(points, CHUNK)]
    return float(torch.cat(inside).double().mean())


def _radii(x: Tensor, k: int) -> Tensor:
    """Distance ``(n,)`` of each row to its k-th nearest other row."""
    radii = []
    for rows in torch.split(torch.arange(len(x)), CHUNK):
        distances = torch.cdist(x[rows], x)
        distances[torch.arange(len(rows)), rows] = torch.inf
        radii.append(distances.kthvalue(k, dim=1).values)
    return torch.cat(radii)


@for_features
def measure_precision_recall(samples: SampleSet, extractor: Extractor, reference: Reference) -> list[Measurement]:
    """Precision and recall of 10,000 samples at most, against as many real rows as there are samples."""
    real = reference.rows[: max(len(samples.x), NEIGHBORS + 1)]
    shares = precision_and_recall(real, samples.features[:MAX_ROWS])
    about = {"extractor": extractor.name, "n_reference": len(real), "better": "higher"}
    return [
        samples.measurement(name, extractor.label(f"{name}, k = {NEIGHBORS}"), share, **about)
        for name, share in zip(("precision", "recall"), shares, strict=True)
    ]
