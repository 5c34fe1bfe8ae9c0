"""Rows from a .csv table."""

import csv
from pathlib import Path

import numpy as np

from adance.data.arrays import Rows, make_splits
from adance.data.splits import Splits
from adance.errors import InputError

LABEL_NAMES = ("class", "label", "target", "y")


def read_table(path: Path) -> Splits:
    """Read vectors from a table separated by commas (or by semicolons or tabs if its first line has no comma).

    The first row is a header if none of its cells is a number, or if it counts 0, 1, 2, …, as pandas names columns
    that have no name. A column called class, label, target or y is the label (but not y if there is a column x);
    otherwise a last column that is not numeric is. All others are features.

    Raises:
        InputError: for cells that are empty, not finite or not numeric, rows of unequal length, or no rows; line
            numbers are the file's, from 1.
    """
    lines = _cells(path)
    first, top = next(iter(lines.items()), (0, []))
    header = lines.pop(first, []) if _is_header(top) else []
    if not lines:
        raise InputError(f"{path}: holds no rows, but needs at least one row of numbers")
    for line, cells in lines.items():
        if len(cells) != len(top):
            raise InputError(f"{path}: line {line} has {len(cells)} cells, but the first has {len(top)}")
    rows, last = list(lines.values()), len(top) - 1
    numbers = [[_number(cell) for cell in row] for row in rows]
    # Bad cells in a numeric column do not make it a label: no cell of a label column is a number.
    is_text = all(row[last] and number[last] is None for row, number in zip(rows, numbers, strict=True))
    label = label_column(str(path), header, last if is_text else None)
    features = [column for column in range(len(top)) if column != label]
    if not features:
        raise InputError(f"{path}: holds only labels, but needs at least one numeric column")
    shown = [repr(name) for name in header] or [str(column + 1) for column in range(len(top))]

    def place(row: int, column: int) -> str:
        return f"{path}: line {list(lines)[row]}, column {shown[column]}"

    values = np.array(numbers, dtype=float)  # NaN for a cell without a number
    bad = np.argwhere(~np.isfinite(values[:, features]))
    if len(bad):
        row, column = bad[0, 0], features[bad[0, 1]]
        what = "a number" if numbers[row][column] is None else "finite"
        problem = f"{rows[row][column]!r} is not {what}" if rows[row][column] else "the cell is empty"
        raise InputError(f"{place(row, column)}: {problem}, but features must be finite numbers")
    names = tuple(header[column] for column in features) if header else None
    y, y_name = None, ""
    if label is not None:
        labels, y_name = [row[label] for row in rows], f"{path}: label column {shown[label]}"
        if "" in labels:
            raise InputError(f"{place(labels.index(''), label)}: the label is empty, but every row needs one")
        y = np.array(labels) if any(row[label] is None for row in numbers) else values[:, label]
    return make_splits(str(path), Rows(values[:, features], y, str(path), y_name, names))


def _cells(path: Path) -> dict[int, list[str]]:
    """The cells of each row that is not blank, by the row's line in the file."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            file.seek(0)
            reader = csv.reader(file, delimiter=next((mark for mark in ",;\t" if mark in first), ","))
            found = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as a UTF-8 table: {' '.join(str(error).split())}") from None
    return {line: cells for line, cells in found if any(cells)}


def _is_header(cells: list[str]) -> bool:
    counted = len(cells) > 1 and cells == [str(i) for i in range(len(cells))]
    return counted or all(_number(cell) is None for cell in cells)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


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
