"""Rows from a .csv table."""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from adance.data.checks import Array, events, labels
from adance.data.splits import Splits
from adance.errors import InputError

_LABEL_NAMES = ("class", "label", "target", "y")


@dataclass(frozen=True)
class _Table:
    """Cells of a table, with the line in the file that each row came from."""

    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def place(self, row: int, column: int) -> str:
        name = repr(self.header[column]) if self.header else str(column + 1)
        return f"{self.path}: line {self.lines[row]}, column {name}"


def read_table(path: Path) -> Splits:
    """Read vectors from a table separated by commas (or by semicolons or tabs if its first line has no comma).

    The first row is a header if none of its cells is a number, or if it counts 0, 1, 2, …, as pandas names columns
    that have no name. A column called class, label, target or y is the label (but not y if there is a column x);
    otherwise a last column that is not numeric is. All others are features.

    Raises:
        InputError: for cells that are empty, not finite or not numeric, rows of unequal length, or no rows; line
            numbers are the file's, from 1.
    """
    table = _parse(path)
    if not table.rows:
        raise InputError(f"{path}: holds no rows, but needs at least one row of numbers")
    last = len(table.rows[0]) - 1
    # Bad cells in a numeric column do not make it a label: no cell of a label column is a number.
    is_text = all(row[last] and not _is_number(row[last]) for row in table.rows)
    column = label_column(str(path), table.header, last if is_text else None)
    features = [c for c in range(len(table.rows[0])) if c != column]
    if not features:
        raise InputError(f"{path}: holds only labels, but needs at least one numeric column")
    values = np.stack([_numbers(table, c) for c in features], 1)
    kind, train = events(values, str(path))
    names = tuple(table.header[c] for c in features) if table.header else None
    return Splits(
        str(path), kind, train, train_labels=None if column is None else _labels(table, column), columns=names
    )


def _is_header(cells: list[str]) -> bool:
    counted = len(cells) > 1 and cells == [str(i) for i in range(len(cells))]
    return counted or not any(_is_number(cell) for cell in cells)


def _parse(path: Path) -> _Table:
    header: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            delimiter = _delimiter(file.readline())
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter)
            for cells in reader:
                stripped = [cell.strip() for cell in cells]
                if not any(stripped):
                    continue
                if not rows and not header and _is_header(stripped):
                    header = stripped
                    continue
                rows.append(stripped)
                lines.append(reader.line_num)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as a UTF-8 table: {' '.join(str(error).split())}") from None
    width = len(header or (rows[0] if rows else []))
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise InputError(f"{path}: line {line} has {len(row)} cells, but the first has {width}")
    return _Table(path, header, rows, lines)


def _delimiter(line: str) -> str:
    return next((mark for mark in ",;\t" if mark in line), ",")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def label_column(name: str, columns: list[str], text_at_end: int | None) -> int | None:
    """The index of the label among the columns of a table, or ``None``.

    Args:
        name: Name of the table in messages.
        columns: Names of the columns; empty if they have none.
        text_at_end: The index of the last column if it has text, otherwise ``None``.

    Raises:
        InputError: Several columns could be the label.
    """
    names = [column.lower() for column in columns]
    named = [i for i, column in enumerate(names) if column in _LABEL_NAMES and not (column == "y" and "x" in names)]
    if len(named) > 1:
        found = ", ".join(repr(columns[i]) for i in named)
        raise InputError(f"{name}: columns {found} could each be the label: keep or rename all but one")
    if named:
        return named[0]
    return text_at_end


def _numbers(table: _Table, column: int) -> Array:
    cells = [row[column] for row in table.rows]
    try:
        values = np.array([float(cell) for cell in cells])
    except ValueError:
        row = next(i for i, cell in enumerate(cells) if not _is_number(cell))
        problem = f"{cells[row]!r} is not a number" if cells[row] else "the cell is empty"
        raise InputError(f"{table.place(row, column)}: {problem}, but features must be numbers") from None
    bad = [i for i, value in enumerate(values.tolist()) if not math.isfinite(value)]
    if bad:
        raise InputError(f"{table.place(bad[0], column)}: {cells[bad[0]]!r} is not finite, but all features must be")
    return values


def _labels(table: _Table, column: int) -> torch.Tensor:
    cells = [row[column] for row in table.rows]
    if "" in cells:
        raise InputError(f"{table.place(cells.index(''), column)}: the label is empty, but every row needs one")
    numeric = all(_is_number(cell) for cell in cells)
    values: Array = np.array([float(cell) for cell in cells]) if numeric else np.array(cells)
    name = repr(table.header[column]) if table.header else str(column + 1)
    return labels([(values, len(cells), f"{table.path}: label column {name}")])[0]
