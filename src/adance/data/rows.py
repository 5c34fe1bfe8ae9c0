"""Rows of a data set: a tensor, or rows that stay on disk until they are asked for."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

IN_MEMORY = 2**30
"""Rows of at most this many bytes are kept in memory."""

CHUNK = 2**24
"""Number of values read at a time when all rows are read."""


@dataclass(frozen=True, eq=False)
class LazyRows:
    """Rows that are read from disk when they are indexed; ``rows[index]`` is the same tensor as for rows in memory.

    Attributes:
        shape: Shape of all rows ``(N, *event)``.
        dtype: Type of the tensors.
        read: Reads the rows with these indices ``(B,)`` as a tensor ``(B, *event)``.
        low: A lower bound on all values.
        high: An upper bound on all values.
        order: Indices ``(N,)`` of the rows among those of ``read``; ``None`` for all of them in their order.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    read: Callable[[Tensor], Tensor]
    low: float
    high: float
    order: Tensor | None = None

    def __len__(self) -> int:
        """The number of rows."""
        return self.shape[0]

    def __getitem__(self, rows: Tensor | slice | int) -> Tensor:
        """The rows ``(B, *event)`` with the indices ``rows`` ``(B,)``, or one row ``(*event)``, as for a tensor."""
        if isinstance(rows, int):
            return self[torch.tensor([rows])][0]
        if isinstance(rows, slice):
            first, stop, step = rows.indices(len(self))
            rows = torch.arange(first, max(first, stop), step)
        elif rows.dtype == torch.bool:
            rows = rows.nonzero().flatten()
        return self.read(rows if self.order is None else self.order[rows])


AnyRows = Tensor | LazyRows
"""Rows ``(N, *event)``: indexed by a tensor or a slice, they are a tensor."""


def take(rows: AnyRows, index: Tensor) -> AnyRows:
    """The rows with the indices ``index`` ``(M,)``; lazy ones stay on disk."""
    if isinstance(rows, Tensor):
        return rows[index]
    order = index if rows.order is None else rows.order[index]
    return replace(rows, shape=(len(index), *rows.shape[1:]), order=order)


def chunks(rows: AnyRows, index: Tensor | None = None) -> Iterator[Tensor]:
    """All rows, or those with the indices ``index``, in their order and in parts of at most `CHUNK` values each."""
    n = rows_per_chunk(rows.shape)
    for first in range(0, len(rows) if index is None else len(index), n):
        part = slice(first, first + n)
        yield rows[part] if index is None else rows[index[part]]


def rows_per_chunk(shape: tuple[int, ...] | torch.Size) -> int:
    """How many rows of arrays of this shape ``(N, *event)`` have at most `CHUNK` values; at least one."""
    return max(1, CHUNK // max(1, math.prod(shape[1:])))


def fits_in_memory(values: int, dtype: torch.dtype) -> bool:
    """Whether this many values of a type are kept in memory."""
    return values * dtype.itemsize <= IN_MEMORY


def value_range(rows: AnyRows) -> tuple[float, float]:
    """A lower and an upper bound on all values; for rows in memory, the lowest and the highest value."""
    return (float(rows.min()), float(rows.max())) if isinstance(rows, Tensor) else (rows.low, rows.high)
