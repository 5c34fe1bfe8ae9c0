"""Checks of arrays; each error message is one line that names the array."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from adance.data.rows import AnyRows, LazyRows, fits_in_memory, rows_per_chunk
from adance.data.transforms import Kind
from adance.errors import InputError

Array = NDArray[Any]


def events(array: Array, where: str) -> tuple[Kind, AnyRows]:
    """Check the rows of an array, and copy them; rows of a memory map that are larger than 1 GiB stay on disk.

    Two axes (N, D) are vectors, kept in float64 so that standardizing them costs no digits. Three or four axes are
    images, brought to (N, C, H, W): integers as uint8, booleans as they are, floats as float32.

    Args:
        array: (N, D), (N, H, W), (N, H, W, C) or (N, C, H, W) with C of 1 or 3.
        where: name of the array in messages.

    Raises:
        InputError: for a wrong dtype or number of axes, no rows, values that are not finite, integer images
            outside 0..255, or an ambiguous or impossible image layout.
    """
    if array.dtype.kind not in "buif":
        raise InputError(f"{where}: dtype is {array.dtype}, but must be numeric (integer, float or bool)")
    if array.ndim not in (2, 3, 4):
        raise InputError(
            f"{where}: shape {array.shape} has {array.ndim} axes, but must have 2 (vectors (N, D)) "
            "or 3 to 4 (images (N, H, W), (N, H, W, C) or (N, C, H, W))"
        )
    if array.size == 0:
        raise InputError(f"{where}: shape {array.shape} is empty, but must hold at least one row of one value")
    images, values = _channels_first(array, where), _values(array, where)
    first = torch.from_numpy(values(images[:1], 0))
    shape = (len(images), *first.shape[1:])
    lazy = isinstance(array, np.memmap) and not fits_in_memory(array.size, first.dtype)
    copy = torch.empty(() if lazy else shape, dtype=first.dtype)
    low, high, n = float("inf"), float("-inf"), rows_per_chunk(shape)
    for start in range(0, len(images), n):
        part = values(images[start : start + n], start)
        if lazy:
            low, high = min(low, float(part.min())), max(high, float(part.max()))
        else:
            copy[start : start + n] = torch.from_numpy(part)

    def read(rows: Tensor) -> Tensor:
        return torch.from_numpy(values(images[rows.numpy()], 0))

    kind: Kind = "vector" if array.ndim == 2 else "image"
    return kind, LazyRows(shape, first.dtype, read, low, high) if lazy else copy


def _values(array: Array, where: str) -> Callable[[Array, int], Array]:
    """The function that checks and copies a part of the array, given the number of its first row."""
    if array.ndim == 2:
        return lambda part, first: _finite(part, np.float64, where, first, array.size)
    if array.dtype.kind == "b":
        return lambda part, first: np.array(part, order="C")
    if array.dtype.kind == "f":
        return lambda part, first: _finite(part, np.float32, where, first, array.size)
    return lambda part, first: _bytes(part, where)


def _finite(part: Array, dtype: type[np.floating[Any]], where: str, first: int, size: int) -> Array:
    # Sums of squares must be finite too, or a variance would overflow.
    limit = float(np.sqrt(np.finfo(dtype).max)) / size
    with np.errstate(over="ignore", invalid="ignore"):
        values = part.astype(dtype, order="C")
        usable = np.abs(values) < limit
    if not usable.all():
        row = int(np.argmin(usable.reshape(len(usable), -1).all(1)))
        value = part[row][~usable[row]].flat[0]
        raise InputError(
            f"{where}: row {first + row} (from 0) holds {value}, but every value must be finite and between "
            f"±{limit:.0e}"
        )
    return values


def _bytes(part: Array, where: str) -> Array:
    low, high = int(part.min()), int(part.max())
    if low < 0 or high > 255:
        raise InputError(f"{where}: integer images range over {low}..{high}, but must be in 0..255")
    return part.astype(np.uint8, order="C")


def _channels_first(images: Array, where: str) -> Array:
    if images.ndim == 2:
        return images
    if images.ndim == 3:
        return images[:, None]
    first, last = images.shape[1] in (1, 3), images.shape[3] in (1, 3)
    if first != last:
        return images if first else images.transpose(0, 3, 1, 2)
    n, a, b, c = images.shape
    readings = f"channels first ({n}, C={a}, H={b}, W={c}) or channels last ({n}, H={a}, W={b}, C={c})"
    problem = "is ambiguous" if first else "has 1 or 3 channels in neither layout"
    raise InputError(f"{where}: image shape {images.shape} {problem}, {readings}: reshape it so that only one fits")
