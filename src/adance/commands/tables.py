"""What the commands on two tables share: they read them, and write a table and a picture."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray

from adance.atomic import check_writable, output_file
from adance.data.table import read_table
from adance.errors import InputError


def read_two_tables(first: str, second: str) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """The features of two tables ``(N, D)`` and ``(M, D)`` with the same columns, and the names of these.

    Raises:
        InputError: A table cannot be read, or the columns differ.
    """
    one = read_table(Path(first))
    two = read_table(Path(second), list(one.columns) if one.columns else None)
    if one.train.shape[1] != two.train.shape[1] or one.columns != two.columns:
        raise InputError(f"{second} must have the columns of {first}: {_shown(one)}, got {_shown(two)}")
    names = list(one.columns or [f"column {i + 1}" for i in range(one.train.shape[1])])
    x, y = (table.train[torch.arange(len(table.train))].double().numpy() for table in (one, two))
    return x, y, names


def picture_beside(out: str, *inputs: str) -> Path:
    """The picture that belongs to the table ``out``, after a check that both can be written.

    Raises:
        InputError: One of the files cannot be written, ``out`` has the name of the picture, or one of the ``inputs``
            would be overwritten.
    """
    table = Path(out)
    if not table.name or table.is_dir():
        raise InputError(f"--out {out} is a folder: use the name of a file that ends in .csv")
    picture = table.with_suffix(".png")
    if any(Path(path).resolve() in (table.resolve(), picture.resolve()) for path in inputs):
        raise InputError(f"--out {out} would overwrite one of the tables: use another name")
    if table == picture:
        raise InputError(
            f"--out {out} is a table, and its picture would have the same name: use a name that ends in .csv"
        )
    check_writable(table)
    check_writable(picture)
    return picture


def write_table(path: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a .csv table."""
    with output_file(Path(path)) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def write_picture(ax: Axes, path: Path) -> None:
    """Write the figure of ``ax`` as a picture, in the format that the name of the file says."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    with output_file(path) as part:
        figure.savefig(part, format=path.suffix[1:])


def _shown(table: Any) -> str:
    return ", ".join(table.columns) if table.columns else f"{table.train.shape[1]} without names"
