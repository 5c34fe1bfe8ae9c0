"""One picture file, or one decoded picture, as an array of bytes."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from adance.data.checks import Array
from adance.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

_GRAY = ("1", "L", "LA")
_COLOR = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV")


def pixels(picture: "Image", where: str, size: int | None) -> Array:
    """Convert a picture to uint8 (H, W, C): C is 1 for a gray picture and 3 for any other; transparency is dropped.

    Args:
        picture: decoded or lazily opened picture.
        where: name of the picture in messages.
        size: side to resize to (bicubic), after cropping the centered square; None leaves it as it is.

    Raises:
        InputError: for pictures that are not gray or color with 8 bits a channel.
    """
    from PIL import Image, ImageOps

    if picture.mode not in _GRAY + _COLOR:
        raise InputError(f"{where}: picture mode is {picture.mode}, but must be gray or color with 8 bits a channel")
    upright = ImageOps.exif_transpose(picture).convert("L" if picture.mode in _GRAY else "RGB")
    if size is not None:
        upright = ImageOps.fit(upright, (size, size), method=Image.Resampling.BICUBIC)
    array = np.asarray(upright)
    return array[..., None] if array.ndim == 2 else array


def stack(pictures: list[Array], names: list[str]) -> Tensor:
    """Stack pictures (H, W, C) into one tensor (N, C, H, W) uint8; if any has color, gray ones become RGB.

    Raises:
        InputError: naming the first picture whose size differs from the first's.
    """
    height, width = pictures[0].shape[:2]
    for picture, name in zip(pictures, names, strict=True):
        if picture.shape[:2] != (height, width):
            raise InputError(
                f"{name}: is {picture.shape[1]} x {picture.shape[0]} pixels (width x height), but the first, "
                f"{names[0]}, is {width} x {height}: make them alike, or set image_size"
            )
    channels = max(picture.shape[2] for picture in pictures)
    images = np.empty((len(pictures), channels, height, width), np.uint8)
    for image, picture in zip(images, pictures, strict=True):
        image[:] = picture.transpose(2, 0, 1)
    return torch.from_numpy(images)
