"""The maximum mean discrepancy (MMD) of two sets of vectors."""

import torch
from torch import Tensor

from adance.errors import InputError
from adance.evaluation.measurement import Measurement
from adance.evaluation.sample_set import SampleSet, for_vectors

MAX_ROWS = 2000
"""Rows on each side of a metric whose cost grows with their square."""


def squared_mmd(x: Tensor, y: Tensor, bandwidth: float | None = None) -> float:
    """Squared maximum mean discrepancy with kernel ``exp(−‖x − y‖²/2h²)``, unbiased (Gretton et al. 2012).

    ``mean_{i≠j} k(xᵢ, xⱼ) + mean_{i≠j} k(yᵢ, yⱼ) − 2 mean k(xᵢ, yⱼ)``. For equal distributions its
    expectation is 0, and about half of its values are negative.

    Args:
        x: ``(n, D)``.
        y: ``(m, D)``.
        bandwidth: h; by default the median distance within ``y``, the reference.

    Raises:
        InputError: ``x`` or ``y`` has fewer than two rows.
    """
    check_vectors(x, y)
    x, y = x.double(), y.double()
    within = torch.cdist(y, y)
    h = bandwidth or float(within[~torch.eye(len(y), dtype=torch.bool)].median()) or 1.0

    def kernel(distances: Tensor) -> Tensor:
        return (-distances.square() / (2 * h * h)).exp()

    def mean_within(distances: Tensor) -> Tensor:
        n = len(distances)
        return (kernel(distances).sum() - n) / (n * (n - 1))

    return float(mean_within(torch.cdist(x, x)) + mean_within(within) - 2 * kernel(torch.cdist(x, y)).mean())


def check_vectors(*sets: Tensor) -> None:
    """Check that each set holds at least two vectors.

    Raises:
        InputError: A set holds fewer than two rows, or no vectors.
    """
    for x in sets:
        if x.ndim != 2 or len(x) < 2:
            raise InputError(f"a distance of samples needs at least 2 vectors on each side, got {tuple(x.shape)}")


@for_vectors
def measure_mmd(samples: SampleSet) -> list[Measurement]:
    """The squared MMD of the first 2,000 samples from as many real rows."""
    x, real = samples.x[:MAX_ROWS], samples.real[:MAX_ROWS]
    name, value = "squared MMD, Gaussian kernel", squared_mmd(x, real)
    return [samples.measurement("squared_mmd", name, value, better="lower", n=len(x), n_reference=len(real))]
