"""Statistics of the columns of vectors, in one pass over their rows."""

from dataclasses import dataclass

import torch
from torch import Tensor

from adance.data.rows import AnyRows, chunks


@dataclass(frozen=True, eq=False)
class Moments:
    """Statistics of columns, each ``(D,)`` float64.

    Attributes:
        n: Number of rows.
        low: Lowest values.
        high: Highest values.
        mean: Means.
        std: Standard deviations (with n in the denominator); NaN for a column of one value.
    """

    n: int
    low: Tensor
    high: Tensor
    mean: Tensor
    std: Tensor

    @property
    def constant(self) -> Tensor:
        """Which columns are constant, up to the rounding of float64: booleans ``(D,)``."""
        largest = torch.maximum(self.low.abs(), self.high.abs())
        return (self.high - self.low <= 1e-14 * largest) | (self.std == 0)


def column_moments(rows: AnyRows, index: Tensor | None = None) -> Moments:
    """Moments of vectors ``(N, D)``, or of those with the indices ``index``.

    The result depends only on the values and their order, not on whether they are in memory.
    """
    found = None
    for part in chunks(rows, index):
        more = _of_chunk(part.to(torch.float64))
        found = more if found is None else _joined(found, more)
    assert found is not None
    return found


def _of_chunk(x: Tensor) -> Moments:
    low, high = x.amin(0), x.amax(0)
    # Scaled by the spread first, since squares of tiny numbers would underflow.
    std = ((x - low) / (high - low)).std(0, correction=0) * (high - low)
    return Moments(len(x), low, high, x.mean(0), std)


def _joined(a: Moments, b: Moments) -> Moments:
    n, low, high = a.n + b.n, torch.minimum(a.low, b.low), torch.maximum(a.high, b.high)
    spread, share = high - low, b.n / n
    step = (b.mean - a.mean) / spread
    squares = [(1 - share) * (a.std.nan_to_num() / spread) ** 2, share * (b.std.nan_to_num() / spread) ** 2]
    variance = sum(squares, share * (1 - share) * step**2)
    return Moments(n, low, high, a.mean + share * (b.mean - a.mean), variance.sqrt() * spread)
