"""Rows from NumPy's .npz and .npy files."""

import warnings
from pathlib import Path

import numpy as np

from adance.data.checks import Array, events, labels
from adance.data.splits import Splits
from adance.errors import InputError


def read_array(path: Path) -> Splits:
    """Rows of an array file, never unpickling anything.

    An .npz holds x_train (or x) and perhaps x_test, y_train (or y), y_test; or one array of any name. An .npy holds the
    rows alone. See `checks.events` for the shapes and ranges.

    Raises:
        InputError: for a file that cannot be read, missing or mismatched keys, or unusable values.
    """
    arrays = _arrays(path)
    keys = _keys(path, list(arrays))
    kind, train = events(arrays[keys["train"]], _where(path, keys["train"]))
    test = None
    if "test" in keys:
        test_kind, test = events(arrays[keys["test"]], _where(path, keys["test"]))
        if (test_kind, test.shape[1:], test.dtype) != (kind, train.shape[1:], train.dtype):
            raise InputError(
                f"{path}: training events have shape {tuple(train.shape[1:])} and type {train.dtype}, test events "
                f"{tuple(test.shape[1:])} and {test.dtype}, but must be alike"
            )
    counts = {"train_labels": len(train), "test_labels": 0 if test is None else len(test)}
    present = [part for part in counts if part in keys]
    coded = labels([(arrays[keys[part]], counts[part], _where(path, keys[part])) for part in present])
    found = dict(zip(present, coded, strict=True))
    return Splits(str(path), kind, train, test, found.get("train_labels"), found.get("test_labels"))


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
            reason = "dtype is object, or it is no NumPy file at all; nothing is unpickled: save plain numeric arrays"
        raise InputError(f"{_where(path, key)}: cannot be read as a NumPy array: {reason}") from None


def _keys(path: Path, names: list[str]) -> dict[str, str]:
    """Which array plays which part."""
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
