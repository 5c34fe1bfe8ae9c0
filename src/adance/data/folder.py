"""Rows from a folder of pictures."""

from pathlib import Path

import torch

from adance.data.checks import Array
from adance.data.pixels import pixels, stack
from adance.data.splits import Splits
from adance.errors import InputError

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
    n = len(listed[0][0])
    classes = [_codes(path, names, listed[0][1]) for _, names in listed]
    split = len(parts) == 2
    return Splits(
        str(path),
        "image",
        images[:n],
        images[n:] if split else None,
        train_labels=classes[0],
        test_labels=classes[1] if split else None,
        image_size=image_size,
    )


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


def _codes(path: Path, names: list[str] | None, training: list[str] | None) -> torch.Tensor | None:
    """Classes by their position in the sorted names of the training classes."""
    if names is None or training is None:
        return None
    places = {name: i for i, name in enumerate(sorted(set(training)))}
    unknown = sorted(set(names) - set(places))
    if unknown:
        raise InputError(f"{path}: class {unknown[0]!r} is in test but not in train, which has {', '.join(places)}")
    return torch.tensor([places[name] for name in names])


def _open(file: Path, image_size: int | None) -> Array:
    from PIL import Image

    try:
        with Image.open(file) as picture:
            return pixels(picture, str(file), image_size)
    except (OSError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise InputError(f"{file}: cannot be read as a picture: {' '.join(str(error).split())}") from None
