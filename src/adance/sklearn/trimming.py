"""Rows of a table that are left when the least likely ones are dropped."""

import math

import torch
from sklearn.covariance import ledoit_wolf
from torch import Tensor

CONCENTRATION_STEPS = 2


def rows_to_keep(n: int, columns: int, contamination: float) -> int:
    """How many of ``n`` rows are kept: a share of 1 − ``contamination``, and enough to have a covariance."""
    return min(n, max(math.ceil((1 - contamination) * n), (n + columns + 1) // 2))


def most_likely(scores: Tensor, keep: int) -> Tensor:
    """Indices ``(keep,)`` of the rows with the greatest scores ``(N,)``, in ascending order."""
    return scores.topk(keep).indices.sort().values


def concentrate(x: Tensor, noise_std: Tensor, keep: int) -> Tensor:
    """Indices ``(keep,)`` of rows ``(N, D)`` in a dense ellipsoid.

    From all rows, it takes two concentration steps (Rousseeuw and Van Driessen 1999): each keeps the rows with the
    smallest Mahalanobis distances from those kept before. The covariance is shrunk (Ledoit and Wolf 2004), so there
    may be more columns than rows.

    Args:
        x: Standardized rows.
        noise_std: Standard deviation of each column's noise ``(D,)``, which is added to the covariance.
        keep: How many rows are kept.
    """
    kept = torch.arange(len(x))
    for _ in range(CONCENTRATION_STEPS):
        kept = most_likely(-_squared_distances(x, x[kept], noise_std), keep)
    return kept


def _squared_distances(x: Tensor, kept: Tensor, noise_std: Tensor) -> Tensor:
    covariance = torch.as_tensor(ledoit_wolf(kept.double().numpy())[0]) + noise_std.double().square().diag()
    z: Tensor = torch.linalg.solve_triangular(
        torch.linalg.cholesky(covariance), (x - kept.mean(0)).double().mT, upper=False
    )
    return z.square().sum(0)
