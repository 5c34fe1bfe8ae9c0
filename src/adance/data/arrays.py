"""Rows from arrays: checked, and read from NumPy's .npz and .npy files."""

import warnings
from dataclasses import dataclass
from pathlib import Path

from adance.data.checks import Array, events
from adance.data.files import ArrayFile, where
from adance.data.labels import labels
from adance.data.splits import Splits
from adance.errors import InputError


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one split, unchecked.

    Attributes:
        x: The rows, as :func:`~adance.data.checks.events` takes them.
        y: Their labels ``(N,)``, or ``None``.
        x_name: Name of the rows in messages.
        y_name: Name of the labels in messages.
        columns: Names of the features, if any.
    """

    x: Array
    y: Array | None
    x_name: str
    y_name: str
    columns: tuple[str, ...] | None = None


def make_splits(name: str, train: Rows, test: Rows | None = None) -> Splits:
    """Check and copy the rows of one or two splits.

    Raises:
        InputError: Values or labels cannot be used, or the splits differ in shape, type or columns.
    """
    kind, x_train = events(train.x, train.x_name)
    x_test = None
    if test is not None:
        test_kind, x_test = events(test.x, test.x_name)
        if (test_kind, x_test.shape[1:], x_test.dtype) != (kind, x_train.shape[1:], x_train.dtype):
            raise InputError(
                f"{name}: training events have shape {tuple(x_train.shape[1:])} and type {x_train.dtype}, test events "
                f"{tuple(x_test.shape[1:])} and {x_test.dtype}, but must be alike"
            )
        if test.columns != train.columns:
            raise InputError(f"{name}: training columns are {train.columns}, test columns {test.columns}")
    labeled = [rows for rows in (train, test) if rows is not None and rows.y is not None]
    coded = iter(labels([(rows.y, len(rows.x), rows.y_name) for rows in labeled if rows.y is not None]))
    y_train, y_test = (next(coded) if rows in labeled else None for rows in (train, test))
    return Splits(name, kind, x_train, x_test, train_labels=y_train, test_labels=y_test, columns=train.columns)


def read_array(path: Path) -> Splits:
    """Read rows from an array file, without unpickling; an .npy above 1 GiB stays on disk.

    An .npz has x_train (or x), optionally x_test, y_train (or y) and y_test; or one array of any name. An .npy has only
    the rows. See `checks.events` for the shapes and ranges.

    Raises:
        InputError: for a file that cannot be read, missing or mismatched keys, or unusable values.
    """
    file = ArrayFile(path)
    keys = _keys(path, list(file.members))
    arrays = file.read(list(keys.values()))

    def rows(split: str) -> Rows:
        x, y = keys[split], keys.get(f"{split}_labels")
        return Rows(arrays[x], None if y is None else arrays[y], where(path, x), where(path, y or ""))

    return make_splits(str(path), rows("train"), rows("test") if "test" in keys else None)


def _keys(path: Path, names: list[str]) -> dict[str, str]:
    """Find the array for each split and label."""
    x, y = ("x_train", "y_train") if "x_train" in names else ("x", "y")
    parts = {"train": x, "test": "x_test", "train_labels": y}
    if "x_test" in names:
        parts["test_labels"] = "y_test"
    if x in names:
        found = {part: key for part, key in parts.items() if key in names}
        unused = [name for name in names if name not in found.values()]
        if unused:
            warnings.warn(f"{path}: not used: {', '.join(map(repr, unused))}", stacklevel=2)
        return found
    if len(names) == 1:
        return {"train": names[0]}
    held = ", ".join(map(repr, names)) or "nothing"
    raise InputError(f"{path}: holds {held}, but needs x_train (and x_test, y_train, y_test), x (and y), or one array")
