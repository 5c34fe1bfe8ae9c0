"""The cells of a table in a text file, as text."""

import csv
import re
import warnings
from pathlib import Path

from adance.data.numerals import has_decimal_comma, looks_like_a_number, number
from adance.errors import InputError

_QUOTED = re.compile(r'"[^"]*"')
_MISSING = {"", "na", "n/a", "null", "none", "-", "?", "."}


def read_cells(path: Path) -> dict[int, list[str]]:
    """The cells of each row, by its line number in the file; lines without cells are left out.

    Tabs separate cells if the first line has any, else semicolons, else commas. Decimal commas between tabs or
    semicolons become points.

    Raises:
        InputError: The file is not a UTF-8 table, rows differ in length, decimal points and commas are mixed, or a
            table of one column has an empty line, which could be a missing value.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = _QUOTED.sub("", next((line for line in file if line.strip()), ""))
            file.seek(0)
            mark = next((mark for mark in "\t;" if mark in first), ",")
            reader = csv.reader(file, delimiter=mark, strict=True)
            numbered = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as a UTF-8 table: {' '.join(str(error).split())}") from None
    found = dict(numbered)
    lines = {line: cells for line, cells in found.items() if cells not in ([], [""])}
    width = len(next(iter(lines.values()), ()))
    for line, cells in lines.items():
        if len(cells) != width:
            raise InputError(f"{path}: line {line} has {len(cells)} cells, but the first has {width}")
    if width == 1:
        _refuse_gaps(path, list(lines), found)
    if mark != ",":
        _replace_decimal_commas(path, lines)
    return lines


def is_header(cells: list[str], columns: list[str] | None = None) -> bool:
    """Whether a first row holds names: none of its cells looks like a number, and some cell is not missing.

    Args:
        cells: The first row.
        columns: Names of the columns that a model was trained on; a row that holds all of them is a header too.
    """
    if columns and set(columns) <= set(cells):
        return True
    return not any(map(looks_like_a_number, cells)) and not {cell.lower() for cell in cells} <= _MISSING


def _refuse_gaps(path: Path, lines: list[int], found: dict[int, list[str]]) -> None:
    gap = next((line for line in found if line not in lines and lines[0] < line < lines[-1]), None)
    if gap is not None:
        raise InputError(f"{path}: line {gap} is empty, which could be a missing value: remove it")


def _replace_decimal_commas(path: Path, lines: dict[int, list[str]]) -> None:
    """Replace decimal commas with points, and warn."""
    cells = [(line, cell) for line, row in lines.items() for cell in row]
    comma = next(((line, cell) for line, cell in cells if has_decimal_comma(cell)), None)
    if comma is None:
        return
    point = next(((line, cell) for line, cell in cells if "." in cell and number(cell) is not None), None)
    if point is not None:
        raise InputError(
            f"{path}: {comma[1]!r} in line {comma[0]} has a decimal comma, but {point[1]!r} in line {point[0]} has "
            "a decimal point: use one of them in the whole file"
        )
    warnings.warn(f"{path}: commas are read as decimal commas, such as {comma[1]!r} in line {comma[0]}", stacklevel=4)
    for row in lines.values():
        row[:] = [cell.replace(",", ".") if has_decimal_comma(cell) else cell for cell in row]
