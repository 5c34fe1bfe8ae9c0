"""Class labels: whole numbers as they are, names by their position in sorted order."""

from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adance.data.checks import Array
from adance.data.numerals import whole_number
from adance.errors import InputError

EITHER = "use only whole numbers, or only names"


def labels(parts: list[tuple[Array, int, str]]) -> list[Tensor]:
    """Class labels as int64, whole numbers as they are and names by their position in sorted order.

    If all names are whole numbers, such as the folders ``2`` and ``10``, the labels are these numbers.

    Args:
        parts: for each split its labels (N,) or (N, 1), the number of rows they belong to, and their name in messages.
            Names are numbered over all splits together.

    Raises:
        InputError: for a wrong length, for labels that are missing or neither whole numbers nor names, or for a number
            that is spelled in two ways.
    """
    flat = [_flat(array, n, where) for array, n, where in parts]
    where = [where for _, _, where in parts]
    texts = [i for i, array in enumerate(flat) if array.dtype.kind == "U"]
    if texts:
        names, places = np.unique(np.concatenate([flat[i] for i in texts]), return_inverse=True)
        numbers = [whole_number(name) for name in names.tolist()]
        if None not in numbers:
            _check_spelling(names.tolist(), numbers, where[texts[0]])
        elif len(texts) < len(flat):
            raise InputError(f"{where[texts[0]]}: labels are names, but those of the other split are numbers: {EITHER}")
        codes = np.arange(len(names)) if None in numbers else np.array(numbers, np.int64)
        for i, part in zip(texts, np.split(codes[places], np.cumsum([len(flat[i]) for i in texts])[:-1]), strict=True):
            flat[i] = part.astype(np.int64)
    return [_whole(array, name) for array, name in zip(flat, where, strict=True)]


def _flat(array: Array, n: int, where: str) -> Array:
    """Labels ``(N,)`` as an array of numbers or of text."""
    if array.shape not in ((n,), (n, 1)):
        raise InputError(f"{where}: labels have shape {array.shape}, but must have one for each row, ({n},)")
    array = array.reshape(-1)
    array = _of_one_type(array, where) if array.dtype.kind in "OT" else array
    if array.dtype.kind == "U" and (array == "").any():
        row = int(np.argmin(array != ""))
        raise InputError(f"{where}: the label of row {row} (from 0) is empty, but every row needs one")
    return array


def _of_one_type(array: Array, where: str) -> Array:
    """Convert an array of Python objects to one of text or of numbers."""
    items = array.tolist()
    for row, item in enumerate(items):
        if is_missing(item):
            raise InputError(f"{where}: the label of row {row} (from 0) is missing, but every row needs one")
    for row, item in enumerate(items):
        if not isinstance(item, str | Real) or isinstance(item, str) != isinstance(items[0], str):
            shown = " ".join(repr(item).split())
            raise InputError(
                f"{where}: label {shown:.60} of row {row} (from 0) differs in type from those before: {EITHER}"
            )
        if isinstance(item, Integral) and not -(2**63) <= int(item) < 2**63:
            raise InputError(f"{where}: the label of row {row} (from 0) has more than 64 bits: use smaller numbers")
    return np.array(items)


def is_missing(label: Any) -> bool:
    """Whether a label is ``None``, NaN, or the missing value of pandas."""
    return (
        label is None or type(label).__name__ in ("NAType", "NaTType") or (isinstance(label, Real) and label != label)
    )


def _check_spelling(names: list[str], numbers: list[int | None], where: str) -> None:
    """Check that no two names are one number, as ``1`` and ``01`` are."""
    first: dict[int | None, str] = {}
    for name, value in zip(names, numbers, strict=True):
        if first.setdefault(value, name) != name:
            raise InputError(
                f"{where}: labels {first[value]!r} and {name!r} are the same number: spell each class in one way"
            )


def _whole(array: Array, where: str) -> Tensor:
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # of infinities
            usable = (np.abs(array) < 2**53) & (array % 1 == 0)
    else:
        usable = np.full(array.shape, array.dtype.kind in "bui")
        if array.dtype.kind == "u":
            usable &= array < 2**63
    if not usable.all():
        row = int(np.argmin(usable))
        raise InputError(f"{where}: label {array[row]} of row {row} is not a whole number: {EITHER}")
    return torch.from_numpy(array.astype(np.int64))
