"""Which columns make a row unlikely: Shapley values of the log-density."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray
from torch import Tensor

from adance.plot.contributions import contributions_of_columns

REFERENCES = 500
"""Likely rows that the nearest ones are chosen from."""

LARGEST_DIFFERENCE = 1.0
"""Largest difference in a column, in standard deviations; in the distance of two rows, larger ones count as this."""

NEAREST = 20
"""Likely rows that a row is compared with; each in one order of the columns and in the reverse order."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Scores as sums over columns.

    Attributes:
        contributions: What each column adds to the score ``(N, D)``; the most negative columns make the row unlikely.
        reference: Mean score ``(N,)`` of the likely rows that each row was compared with; with the sum of its
            contributions it is the row's score.
        columns: The names of the columns.
    """

    contributions: NDArray[np.float64]
    reference: NDArray[np.float64]
    columns: tuple[str, ...]

    def top(self, n: int = 3) -> list[list[str]]:
        """The ``n`` columns of each row that make it most unlikely, the worst one first."""
        return [[self.columns[i] for i in order[:n]] for order in self.contributions.argsort(1)]

    def plot(self, row: int = 0, n: int = 10) -> Axes:
        """Draw the ``n`` largest contributions to the score of a row as bars, and return the matplotlib axes."""
        return contributions_of_columns(self.contributions[row], self.columns, n)


def shapley_values(
    score: Callable[[Tensor], Tensor], x: Tensor, likely: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Contributions ``(N, D)`` of the columns to the scores of rows, and the mean score ``(N,)`` of their references.

    A row is compared with its nearest likely rows. In this distance, a difference of more than 1 in a column counts as
    1: otherwise the columns in which the row is unusual would decide which rows are near. The values of a likely row
    are replaced by those of the row, one column after the other, in a random order; a column's contribution is the mean
    change of the score. So the contributions sum exactly to the difference of the scores.

    Args:
        score: Scores ``(B,)`` of rows ``(B, D)``.
        x: The rows ``(N, D)``.
        likely: Likely rows ``(M, D)``.
        generator: Source of randomness.
    """
    n, d = x.shape
    nearest = _capped_distances(x, likely).topk(min(NEAREST, len(likely)), largest=False).indices
    total, reference = torch.zeros_like(x), x.new_zeros(n)
    for which in nearest.unbind(1):
        order = torch.randperm(d, generator=generator)
        for columns in (order, order.flip(0)):
            mixed = likely[which]
            before = score(mixed)
            reference += before
            for column in columns.tolist():
                mixed = mixed.clone()
                mixed[:, column] = x[:, column]
                after = score(mixed)
                total[:, column] += after - before
                before = after
    paths = 2 * nearest.shape[1]
    return total / paths, reference / paths


def _capped_distances(x: Tensor, likely: Tensor) -> Tensor:
    """Squared distances ``(N, M)``, to which each column adds at most 1."""
    total = x.new_zeros(len(x), len(likely))
    for one, other in zip(x.unbind(1), likely.unbind(1), strict=True):
        total += (one[:, None] - other).abs().clamp(max=LARGEST_DIFFERENCE).square()
    return total
