"""Rows from a .csv table."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from adance.data.arrays import Rows, make_splits
from adance.data.cells import is_header, read_cells
from adance.data.labels import EITHER
from adance.data.numerals import looks_like_a_number, number, whole_number
from adance.data.splits import Splits
from adance.errors import InputError

LABEL_NAMES = ("class", "label", "target", "y")


def read_table(path: Path, columns: list[str] | None = None) -> Splits:
    """Read vectors from a table separated by commas, or by semicolons or tabs if its first line has any.

    The first row is a header if none of its cells is a number. A column called class, label, target or y is the label
    (but not y if there is a column x); otherwise a last column that is not numeric is. All others are features.

    Args:
        path: The table.
        columns: Names of the columns that a model was trained on, if any: a first row that holds them is a header.

    Raises:
        InputError: for cells that are empty, not finite or not numeric, rows of unequal length, or no rows; line
            numbers are the file's, from 1.
    """
    lines = read_cells(path)
    first, top = next(iter(lines.items()), (0, []))
    header = lines.pop(first, []) if is_header(top, columns) else []
    if not lines:
        raise InputError(f"{path}: holds no rows, but needs at least one row of numbers")
    if len(top) > 1 and top == [str(i) for i in range(len(top))]:
        read = "as the names of the columns, as in training" if header else "as data; if they are names, remove them"
        warnings.warn(f"{path}: the numbers {', '.join(top):.40} of the first line are read {read}", stacklevel=3)
    rows, last = list(lines.values()), len(top) - 1
    # A column with a number in it is not a label, even if other cells are not numbers.
    is_text = all(row[last] and not looks_like_a_number(row[last]) for row in rows)
    label = label_column(str(path), header, last if is_text else None)
    features = [column for column in range(len(top)) if column != label]
    if not features:
        raise InputError(f"{path}: holds only labels, but needs at least one numeric column")
    shown = [repr(name) for name in header] or [str(column + 1) for column in range(len(top))]

    def place(row: int, column: int) -> str:
        return f"{path}: line {list(lines)[row]}, column {shown[column]}"

    numbers = [[number(row[column]) for column in features] for row in rows]
    values = np.array(numbers, dtype=float)  # NaN for a cell without a number
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0]
        cell, what = rows[row][features[column]], "a number" if numbers[row][column] is None else "finite"
        problem = f"{cell!r:.60} is not {what}" if cell else "the cell is empty"
        raise InputError(f"{place(row, features[column])}: {problem}, but features must be finite numbers")
    names = tuple(header[column] for column in features) if header else None
    y, y_name = None, ""
    if label is not None:
        y_name = f"{path}: label column {shown[label]}"
        y = np.array(_labels([row[label] for row in rows], lambda row: place(row, label)))
    return make_splits(str(path), Rows(values, y, str(path), y_name, names))


def _labels(cells: list[str], place: Callable[[int], str]) -> list[str]:
    """Check that no label is empty, and that labels are whole if they are numbers; return them."""
    if "" in cells:
        raise InputError(f"{place(cells.index(''))}: the label is empty, but every row needs one")
    if all(number(cell) is not None for cell in cells):
        for row, cell in enumerate(cells):
            if whole_number(cell) is None:
                raise InputError(f"{place(row)}: label {cell!r:.60} is not a whole number: {EITHER}")
    return cells


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
    named = [i for i, column in enumerate(names) if column in LABEL_NAMES and not (column == "y" and "x" in names)]
    if len(named) > 1:
        found = ", ".join(repr(columns[i]) for i in named)
        raise InputError(f"{name}: columns {found} could each be the label: keep or rename all but one")
    return named[0] if named else text_at_end
