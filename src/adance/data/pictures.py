"""Pictures: what their headers say, and their pixels."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from adance.data.checks import Array
from adance.data.rows import AnyRows, LazyRows, fits_in_memory
from adance.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

_GRAY = ("1", "L", "LA")
_PALETTE = ("P", "PA")
_COLOR = (*_PALETTE, "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV")
_ORIENTATION, _QUARTER_TURNS = 0x0112, (5, 6, 7, 8)


@dataclass(frozen=True)
class Header:
    """Properties of a picture that are known without decoding it.

    Attributes:
        size: Width and height in pixels, upright.
        channels: 1 for a gray picture and 3 for any other.
        transparent: Whether pixels can be transparent.
    """

    size: tuple[int, int]
    channels: int
    transparent: bool


def read_header(file: Path) -> Header:
    """The header of a picture.

    Raises:
        InputError: The file is not a picture with 8 bits per channel, or has more pixels than Pillow allows.
    """
    with _opened(file) as picture:
        _check_mode(picture, str(file))
        return Header(_upright_size(picture), 1 if _is_gray(picture) else 3, _is_transparent(picture))


def picture_rows(files: list[Path], shape: tuple[int, int, int], image_size: int | None) -> AnyRows:
    """Pictures as rows ``(N, C, H, W)`` uint8; if they take more than 1 GiB, they are decoded when indexed.

    Args:
        files: One file for each row.
        shape: Shape ``(C, H, W)`` of a row.
        image_size: As in `pixels`.

    Raises:
        InputError: A file cannot be read, or has another shape; lazy rows raise it when they are indexed.
    """
    channels, height, width = shape

    def read(rows: Tensor) -> Tensor:
        images = np.empty((len(rows), *shape), np.uint8)
        for image, row in zip(images, rows.tolist(), strict=True):
            with _opened(files[row]) as picture:
                found = pixels(picture, str(files[row]), image_size)
            if found.shape[:2] != (height, width) or found.shape[2] > channels:
                raise InputError(f"{files[row]}: its pixels do not fit its header: was the file changed?")
            image[:] = found.transpose(2, 0, 1)
        return torch.from_numpy(images)

    lazy = LazyRows((len(files), *shape), torch.uint8, read, 0, 255)
    return lazy[:] if fits_in_memory(len(files) * channels * height * width, torch.uint8) else lazy


def pixels(picture: "Image", where: str, size: int | None) -> Array:
    """Convert a picture to uint8 (H, W, C), C = 1 if it is gray and 3 otherwise; transparent pixels become white.

    Args:
        picture: decoded or lazily opened picture.
        where: name of the picture in messages.
        size: side to resize to (bicubic), after cropping the centered square; None leaves it as it is.

    Raises:
        InputError: for pictures that are not gray or color with 8 bits a channel.
    """
    from PIL import Image, ImageOps

    _check_mode(picture, where)
    mode = "L" if _is_gray(picture) else "RGB"
    upright = ImageOps.exif_transpose(picture)
    if _is_transparent(picture):
        over = upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", over.size, "white"), over)
    upright = upright.convert(mode)
    if size is not None:
        upright = ImageOps.fit(upright, (size, size), method=Image.Resampling.BICUBIC)
    array = np.asarray(upright)
    return array[..., None] if array.ndim == 2 else array


def stack(pictures: list[Array], names: list[str]) -> Tensor:
    """Stack pictures (H, W, C) into one tensor (N, C, H, W) uint8; if any has color, gray ones become RGB.

    Raises:
        InputError: naming the first picture whose size differs from the first's.
    """
    check_sizes([(picture.shape[1], picture.shape[0]) for picture in pictures], names)
    channels = max(picture.shape[2] for picture in pictures)
    images = np.empty((len(pictures), channels, *pictures[0].shape[:2]), np.uint8)
    for image, picture in zip(images, pictures, strict=True):
        image[:] = picture.transpose(2, 0, 1)
    return torch.from_numpy(images)


def check_sizes(sizes: list[tuple[int, int]], names: list[str]) -> None:
    """Check that all pictures have the width and height of the first.

    Raises:
        InputError: naming the first picture whose size differs.
    """
    width, height = sizes[0]
    for size, name in zip(sizes, names, strict=True):
        if size != (width, height):
            raise InputError(
                f"{name}: is {size[0]} x {size[1]} pixels (width x height), but the first, {names[0]}, is "
                f"{width} x {height}: make them alike, or set image_size"
            )


@contextmanager
def _opened(file: Path) -> Iterator["Image"]:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file) as picture:
                yield picture
    except InputError:
        raise
    # A broken picture fails in as many ways as there are formats.
    except Exception as error:
        raise InputError(f"{file}: cannot be read as a picture: {' '.join(str(error).split()):.300}") from None


def _upright_size(picture: "Image") -> tuple[int, int]:
    from PIL import ImageOps

    # Versions of Pillow differ in whether the size of a TIFF is the one before or after turning.
    if picture.format == "TIFF":
        return ImageOps.exif_transpose(picture).size
    # Pillow would decode a whole PNG to search for an orientation behind the pixels.
    known = picture.format != "PNG" or "exif" in picture.info
    turned = known and picture.getexif().get(_ORIENTATION) in _QUARTER_TURNS
    return (picture.height, picture.width) if turned else picture.size


def _check_mode(picture: "Image", where: str) -> None:
    if picture.mode not in _GRAY + _COLOR:
        raise InputError(f"{where}: picture mode is {picture.mode}, but must be gray or color with 8 bits a channel")
    # A JPEG of several pictures (MPO) is a photograph with its previews.
    if getattr(picture, "is_animated", False) and picture.format != "MPO":
        raise InputError(f"{where}: has several frames, but must be one picture: save each frame as a file")


def _is_gray(picture: "Image") -> bool:
    """Whether a picture has gray levels only, by its mode or by all colors of its palette."""
    if picture.mode not in _PALETTE or picture.palette is None:
        return picture.mode in _GRAY
    layout, data = picture.palette.getdata()
    colors = np.frombuffer(bytes(data), np.uint8)
    colors = colors.reshape(3, -1).T if layout == "RGB;L" else colors.reshape(-1, len(layout))
    return bool((colors[:, :3] == colors[:, :1]).all())


def _is_transparent(picture: "Image") -> bool:
    return picture.mode in ("LA", "PA", "RGBA") or "transparency" in picture.info
