"""The Fréchet distance (FID if the features are Inception's) of samples and real data."""

import warnings

import torch
from torch import Tensor

from adance.evaluation.extractor import Extractor
from adance.evaluation.measurement import Measurement
from adance.evaluation.reference import Reference
from adance.evaluation.sample_set import SampleSet, for_features
from adance.evaluation.torchmetrics_features import GivenFeatures, check_features, no_warnings


def frechet_distance(reference: Reference, features: Tensor) -> float:
    """The Fréchet distance between two normal distributions with the moments of features (Heusel et al. 2017).

    ``‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2(Σ₁Σ₂)^½)``, covariances with n − 1. Below n = d a covariance is singular: the value
    is finite and real, but far above the distance between the distributions, and there is a warning.

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
            f"Fréchet distance of n = {min(n, reference.n)} events in d = {d} features: n < d, so the covariance is "
            "singular and the distance far too large; use more events",
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
