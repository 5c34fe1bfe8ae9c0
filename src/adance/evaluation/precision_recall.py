"""Precision and recall by k-nearest-neighbor manifolds (Kynkäänniemi et al. 2019)."""

import torch
from torch import Tensor

from adance.errors import InputError
from adance.evaluation.extractor import Extractor
from adance.evaluation.measurement import Measurement
from adance.evaluation.reference import MAX_ROWS, Reference
from adance.evaluation.sample_set import SampleSet, for_features

CHUNK = 2000
NEIGHBORS = 3


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
