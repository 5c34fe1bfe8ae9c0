"""Rows of a table for training: their units, their resolution, and a part that is held out."""

from dataclasses import dataclass

import torch
from torch import Tensor

from adance.data.transforms import Standardize
from adance.errors import InputError
from adance.sklearn.budget import FEW_ROWS
from adance.training.in_memory import Rows

SMALLEST_NOISE = 0.05
"""Least standard deviation of the noise that is added to a column, in standard deviations of the column."""

LARGEST_NOISE = 0.5

MEASURED_ROWS = 500
"""Held-out rows are repeated, each time with other noise, until there are this many."""


@dataclass(frozen=True, eq=False)
class TableRows:
    """Standardized rows, split.

    Attributes:
        units: From the table's units to the model's.
        train: Rows to train on; their noise has the columns' resolution.
        held_out: Rows that decide when training stops.
    """

    units: Standardize
    train: Rows
    held_out: Rows

    @classmethod
    def of(
        cls,
        x: Tensor,
        generator: torch.Generator,
        labels: Tensor | None = None,
        units: Standardize | None = None,
        kept: Tensor | None = None,
    ) -> "TableRows":
        """Split rows ``(N, D)``: a tenth is held out, of at most 300 rows a fifth.

        Args:
            x: The rows, float64.
            generator: Source of randomness.
            labels: Labels ``(N,)``.
            units: The units; by default fitted to ``x``.
            kept: Indices of the rows that are used; units and noise are those of all rows.

        Raises:
            InputError: ``units`` are for another number of columns.
        """
        if units is not None and len(units.mean) != x.shape[1]:
            raise InputError(f"warm_start continues a fit of {len(units.mean)} columns, got rows of {x.shape[1]}")
        units = units or Standardize.fit(x)
        standard = units.to_model(x)
        every = Rows(standard, labels, resolution(standard))
        if kept is not None:
            every = every.at(kept)
        n = len(every.x)
        order = torch.randperm(n, generator=generator)
        held = max(1, n // (5 if n <= FEW_ROWS else 10))
        return cls(units, every.at(order[held:]), _repeated(every.at(order[:held])))


def resolution(x: Tensor) -> Tensor:
    """Standard deviation of the noise for each column of standardized rows ``(N, D)``.

    It is half of the mean distance of neighboring values, between 0.05 and 0.5: rounded and discrete columns get as
    much as they need to have a density.
    """
    gaps = []
    for column in torch.unbind(x, 1):
        values = torch.unique(column)
        gaps.append((values[-1] - values[0]) / max(1, len(values) - 1))
    return (torch.stack(gaps) / 2).clamp(SMALLEST_NOISE, LARGEST_NOISE)


def _repeated(rows: Rows) -> Rows:
    times = max(1, MEASURED_ROWS // len(rows.x))
    labels = None if rows.labels is None else rows.labels.repeat(times)
    return Rows(rows.x.repeat(times, 1), labels, rows.noise_std)
