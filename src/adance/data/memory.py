"""Rows from arrays, tensors and DataFrames in memory."""

import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adance.data.arrays import Rows, make_splits
from adance.data.checks import Array
from adance.data.splits import Splits
from adance.data.table import label_column
from adance.errors import InputError


def read_memory(name: str, x_train: Any, x_test: Any = None, y_train: Any = None, y_test: Any = None) -> Splits:
    """Read rows from NumPy arrays, torch tensors or pandas DataFrames.

    Args:
        name: Name of the data set.
        x_train: Training rows.
        x_test: Held-out rows.
        y_train: Labels of the training rows.
        y_test: Labels of the held-out rows.

    Raises:
        InputError: Values or labels cannot be used, or the splits do not match.
    """
    if x_test is None and y_test is not None:
        raise InputError(f"{name}: y_test is given without x_test")
    train = _rows(x_train, y_train, "train")
    return make_splits(name, train, None if x_test is None else _rows(x_test, y_test, "test"))


def _rows(x: Any, y: Any, split: str) -> Rows:
    x_name, y_name = f"x_{split}", f"y_{split}"
    if _is_frame(x):
        return _frame_rows(x, y, x_name, y_name)
    return Rows(_array(x, x_name), None if y is None else _label_array(y, y_name), x_name, y_name)


def _frame_rows(frame: Any, y: Any, x_name: str, y_name: str) -> Rows:
    """Features and labels of a DataFrame, by the rules of a table in a file."""
    if not frame.size:
        raise InputError(f"{x_name}: shape {frame.shape} is empty, but must hold at least one row of one value")
    names, numeric = [str(name) for name in frame.columns], [dtype.kind in "biuf" for dtype in frame.dtypes]
    label = label_column(x_name, names, None if numeric[-1] else len(names) - 1)
    if label is not None:
        if y is not None:
            raise InputError(f"{x_name}: labels are given twice, as column {names[label]!r} and as {y_name}")
        y, y_name = np.asarray(frame.iloc[:, label], dtype=object), f"{x_name}: label column {names[label]!r}"
    features = [i for i in range(len(names)) if i != label]
    text = ", ".join(repr(names[i]) for i in features if not numeric[i])
    if text:
        raise InputError(f"{x_name}: columns must be numbers, but these are not: {text:.200}")
    if not features:
        raise InputError(f"{x_name}: holds only labels, but needs at least one numeric column")
    values = np.stack([frame.iloc[:, i].to_numpy(np.float64, na_value=np.nan) for i in features], 1)
    rows, columns = np.nonzero(~np.isfinite(values))
    if len(rows):
        raise InputError(
            f"{x_name}: row {rows[0]} (from 0), column {names[features[columns[0]]]!r}: the value is missing or not "
            "finite, but features must be finite numbers"
        )
    y = None if y is None else _label_array(y, y_name)
    return Rows(values, y, x_name, y_name, tuple(names[i] for i in features))


def _array(value: Any, name: str) -> Array:
    """``value`` as an array, which may share its memory."""
    if np.ma.is_masked(value):
        raise InputError(f"{name}: has masked values, but every value must be known")
    try:
        if isinstance(value, Tensor):
            return (value.float() if value.dtype == torch.bfloat16 else value).numpy(force=True)
        return value if isinstance(value, np.memmap) else np.asarray(value)
    except (RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"{name}: cannot be read as an array: {' '.join(str(error).split())}") from None


def _label_array(value: Any, name: str) -> Array:
    """Labels as an array, of objects for a list, since NumPy would turn a missing name into the text ``nan``."""
    return np.array(value, dtype=object) if isinstance(value, list | tuple) else _array(value, name)


def _is_frame(value: Any) -> bool:
    """Whether ``value`` is a pandas DataFrame, without importing pandas."""
    return isinstance(value, getattr(sys.modules.get("pandas"), "DataFrame", ()))
