"""Precision and recall by k-nearest-neighbour manifolds (Kynkäänniemi et al. 2019)."""

import torch
from torch import Tensor

from adance.errors import InputError

CHUNK = 2000


def precision_recall(real: Tensor, generated: Tensor, k: int = 3) -> tuple[float, float]:
    """Share of samples inside the manifold of real data, and share of real data inside the manifold of samples.

    The manifold of a set is the union of balls around its points, each reaching to the point's k-th nearest neighbour
    in the set (the point itself not counted).

    Args:
        real: Features ``(m, d)``.
        generated: Features ``(n, d)``.
        k: Neighbours.

    Returns:
        Precision and recall, each in [0, 1].

    Raises:
        InputError: A set has no k-th neighbour.
    """
    if k < 1 or min(len(real), len(generated)) <= k:
        raise InputError(
            f"precision and recall with k = {k} neighbours need more than {k} rows, "
            f"got {len(real)} real and {len(generated)} generated"
        )
    return _share_inside(generated, real, k), _share_inside(real, generated, k)


def _share_inside(points: Tensor, centres: Tensor, k: int) -> float:
    """Share of ``points`` in the manifold of ``centres``."""
    radii = _radii(centres, k)
    inside = [(torch.cdist(part, centres) <= radii).any(1) for part in torch.split(points, CHUNK)]
    return float(torch.cat(inside).double().mean())


def _radii(x: Tensor, k: int) -> Tensor:
    """Distance ``(n,)`` of each row to its k-th nearest other row."""
    radii = []
    for rows in torch.split(torch.arange(len(x)), CHUNK):
        distances = torch.cdist(x[rows], x)
        distances[torch.arange(len(rows)), rows] = torch.inf
        radii.append(distances.kthvalue(k, dim=1).values)
    return torch.cat(radii)
