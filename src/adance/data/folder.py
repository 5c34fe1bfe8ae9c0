"""Rows from pictures: a folder of files, or pictures that are decoded already."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from adance.data.checks import Array
from adance.data.labels import labels
from adance.data.splits import Splits
from adance.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

_GRAY = ("1", "L", "LA")
_COLOR = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV")
_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")


def read_folder(path: Path, image_size: int | None = None) -> Splits:
    """Read the pictures of a folder in sorted order; other files and hidden ones are ignored.

    The pictures are in the folder itself, or in one sub-folder for each class. Sub-folders train and test are its
    splits. If all pictures are gray, C = 1; otherwise all become RGB.

    Args:
        path: the folder.
        image_size: side to resize every picture to, after cropping the centered square; None requires equal sizes.

    Raises:
        InputError: for a folder without pictures or with a mixed layout, a broken file, or sizes that differ.
    """
    parts = [path / "train", path / "test"]
    if not all(part.is_dir() for part in parts):
        parts = [path]
    listed = [_list(part) for part in parts]
    files = [file for files, _ in listed for file in files]
    images = stack([_open(file, image_size) for file in files], [str(file) for file in files])
    n, classes = len(listed[0][0]), _codes(path, [names for _, names in listed])
    train, y_train = images[:n], classes[0]
    test, y_test = (images[n:], classes[1]) if len(parts) == 2 else (None, None)
    return Splits(str(path), "image", train, test, train_labels=y_train, test_labels=y_test, image_size=image_size)


def _list(path: Path) -> tuple[list[Path], list[str] | None]:
    """Picture files, and the class of each if they are in sub-folders."""
    here = _pictures(path)
    classes = {folder.name: _pictures(folder) for folder in sorted(path.iterdir()) if folder.is_dir()}
    below = [(file, name) for name, files in classes.items() for file in files]
    if here and below:
        raise InputError(f"{path}: pictures are both in the folder and in {below[0][0].parent}: use one or the other")
    if not here and not below:
        raise InputError(f"{path}: has no pictures ({', '.join(_SUFFIXES)}), neither directly nor in sub-folders")
    return (here, None) if here else ([file for file, _ in below], [name for _, name in below])


def _pictures(folder: Path) -> list[Path]:
    files = (f for f in folder.iterdir() if f.suffix.lower() in _SUFFIXES and not f.name.startswith("."))
    return sorted(file for file in files if file.is_file())


def _codes(path: Path, names: list[list[str] | None]) -> list[Tensor | None]:
    """Labels of each part by the names of its classes; no label if a part has no classes."""
    training = sorted(set(names[0] or ()))
    unknown = sorted(set(names[-1] or ()) - set(training))
    if training and unknown:
        raise InputError(f"{path}: class {unknown[0]!r} is in test but not in train, which has {', '.join(training)}")
    if any(part is None for part in names):
        return [None] * len(names)
    return list(labels([(np.array(part), len(part), f"{path}: class folders") for part in names if part is not None]))


def _open(file: Path, image_size: int | None) -> Array:
    from PIL import Image

    try:
        with Image.open(file) as picture:
            return pixels(picture, str(file), image_size)
    except (OSError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise InputError(f"{file}: cannot be read as a picture: {' '.join(str(error).split())}") from None


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
