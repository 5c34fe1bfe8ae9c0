"""Checks of arrays; each error message is one line that names the array."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from adance.data.transforms import Kind
from adance.errors import InputError

Array = NDArray[Any]


def events(array: Array, where: str) -> tuple[Kind, Tensor]:
    """Copy and check the rows of an array.

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
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.ndim == 2:
        return "vector", torch.from_numpy(_finite(array, np.float64, where))
    return "image", torch.from_numpy(np.ascontiguousarray(_channels_first(_pixels(array, where), where)))


def _finite(array: Array, dtype: type[np.floating[Any]], where: str) -> Array:
    # Sums of squares must be finite too, or a variance would overflow.
    limit = float(np.sqrt(np.finfo(dtype).max)) / array.size
    with np.errstate(over="ignore", invalid="ignore"):
        values = array.astype(dtype)
        usable = np.abs(values) < limit
    if not usable.all():
        row = int(np.argmin(usable.reshape(len(usable), -1).all(1)))
        value = array[row][~usable[row]].flat[0]
        raise InputError(
            f"{where}: row {row} (from 0) holds {value}, but every value must be finite and between ±{limit:.0e}"
        )
    return values


def _pixels(array: Array, where: str) -> Array:
    if array.dtype.kind == "b":
        return np.array(array)
    if array.dtype.kind == "f":
        return _finite(array, np.float32, where)
    low, high = int(array.min()), int(array.max())
    if low < 0 or high > 255:
        raise InputError(f"{where}: integer images range over {low}..{high}, but must be in 0..255")
    return array.astype(np.uint8)


def _channels_first(images: Array, where: str) -> Array:
    if images.ndim == 3:
        return images[:, None]
    first, last = images.shape[1] in (1, 3), images.shape[3] in (1, 3)
    if first != last:
        return images if first else images.transpose(0, 3, 1, 2)
    n, a, b, c = images.shape
    readings = f"channels first ({n}, C={a}, H={b}, W={c}) or channels last ({n}, H={a}, W={b}, C={c})"
    problem = "is ambiguous" if first else "has 1 or 3 channels in neither layout"
    raise InputError(f"{where}: image shape {images.shape} {problem}, {readings}: reshape it so that only one fits")
