"""Rows from NumPy's .npz and .npy files."""

import warnings
from pathlib import Path

import numpy as np

from adance.data.arrays import Rows, make_splits
from adance.data.checks import Array
from adance.data.splits import Splits
from adance.errors import InputError


def read_array(path: Path) -> Splits:
    """Read rows from an array file, without unpickling.

    An .npz has x_train (or x), optionally x_test, y_train (or y) and y_test; or one array of any name. An .npy has only
    the rows. See `checks.events` for the shapes and ranges.

    Raises:
        InputError: for a file that cannot be read, missing or mismatched keys, or unusable values.
    """
    arrays = _arrays(path)
    keys = _keys(path, list(arrays))
    return make_splits(
        str(path), _rows(path, arrays, keys, "train"), _rows(path, arrays, keys, "test") if "test" in keys else None
    )


def _rows(path: Path, arrays: dict[str, Array], keys: dict[str, str], split: str) -> Rows:
    x, y = keys[split], keys.get(f"{split}_labels")
    return Rows(
        arrays[x],
        None if y is None else arrays[y],
        x_name=_where(path, x),
        y_name="" if y is None else _where(path, y),
    )


def _arrays(path: Path) -> dict[str, Array]:
    """All arrays of the file by name; the one of an .npy is called ""."""
    key = ""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"": loaded}
            arrays = {}
            for key in loaded.files:
                arrays[key] = loaded[key]
            return arrays
    # A broken archive or header fails in NumPy, zipfile, zlib, struct or ast; all mean that the file is unusable.
    except Exception as error:
        reason = " ".join(str(error).split())
        if "pickle" in reason or "Object arrays" in reason:
            reason = (
                "dtype is object, or it is not a NumPy file; pickled objects are not loaded: save plain numeric arrays"
            )
        raise InputError(f"{_where(path, key)}: cannot be read as a NumPy array: {reason}") from None


def _keys(path: Path, names: list[str]) -> dict[str, str]:
    """Find the array for each split and label."""
    parts = {"train": "x_train", "test": "x_test", "train_labels": "y_train", "test_labels": "y_test"}
    if "x_train" not in names:
        parts |= {"train": "x", "train_labels": "y"}
    if parts["train"] in names:
        found = {part: key for part, key in parts.items() if key in names}
        if "test" not in found:
            found.pop("test_labels", None)
        unused = [name for name in names if name not in found.values()]
        if unused:
            warnings.warn(f"{path}: not used: {', '.join(map(repr, unused))}", stacklevel=2)
        return found
    if len(names) == 1:
        return {"train": names[0]}
    held = ", ".join(map(repr, names)) or "nothing"
    raise InputError(f"{path}: holds {held}, but needs x_train (and x_test, y_train, y_test), x (and y), or one array")


def _where(path: Path, key: str) -> str:
    return f"{path}[{key!r}]" if key else str(path)
