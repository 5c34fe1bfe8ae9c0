"""The sliced Wasserstein distance of two sets of vectors."""

import torch
from torch import Tensor

from adance.evaluation.measurement import Measurement
from adance.evaluation.mmd import check_vectors
from adance.evaluation.sample_set import SampleSet, for_vectors


def sliced_wasserstein(
    x: Tensor, y: Tensor, *, directions: int = 200, points: int = 1000, generator: torch.Generator | None = None
) -> float:
    """The sliced 2-Wasserstein distance ``(E_v W₂²(vᵀx, vᵀy))^½`` (Bonneel et al. 2015).

    The mean is over random directions v of length 1. In one dimension W₂ is the distance of the quantile functions,
    which are compared at ``points`` mid-points.

    Args:
        x: ``(n, D)``.
        y: ``(m, D)``.
        directions: Number of v.
        points: Number of quantiles.
        generator: Source of the directions.

    Raises:
        InputError: ``x`` or ``y`` has fewer than two rows.
    """
    check_vectors(x, y)
    v = torch.randn(x.shape[1], directions, generator=generator, dtype=torch.float64)
    v = v / v.norm(dim=0)
    levels = (torch.arange(points, dtype=torch.float64) + 0.5) / points
    quantiles = [torch.quantile(z.double() @ v, levels, dim=0, interpolation="linear") for z in (x, y)]
    return float((quantiles[0] - quantiles[1]).square().mean().sqrt())


@for_vectors
def measure_wasserstein(samples: SampleSet) -> list[Measurement]:
    """The sliced Wasserstein distance of the samples from as many real rows."""
    value = sliced_wasserstein(samples.x, samples.real, generator=samples.generator())
    name, m = "sliced Wasserstein distance", len(samples.real)
    return [samples.measurement("sliced_wasserstein", name, value, better="lower", n_reference=m)]
