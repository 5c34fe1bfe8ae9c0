"""The kernel distance (KID if the features are Inception's) of samples and real data."""

import torch
from torch import Tensor

from adance.evaluation.extractor import Extractor
from adance.evaluation.measurement import Measurement
from adance.evaluation.reference import Reference
from adance.evaluation.sample_set import SampleSet, for_features
from adance.evaluation.torchmetrics_features import GivenFeatures, check_features, no_warnings
from adance.randomness import fork_rng


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
