"""Rows from a folder of pictures."""

import warnings
from pathlib import Path

import numpy as np
from torch import Tensor

from adance.data.labels import labels
from adance.data.pictures import check_sizes, picture_rows, read_header
from adance.data.splits import Splits
from adance.errors import InputError

_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
_SPLITS = {
    "train": ("train", "training"),
    "test": ("test", "testing"),
    "val": ("val", "valid", "validation"),
}
"""Folder names that mark splits, in upper or lower case."""


def read_folder(path: Path, image_size: int | None = None) -> Splits:
    """Read the pictures of a folder in sorted order; other files and hidden ones are ignored.

    The pictures are in the folder itself, or in one sub-folder for each class. Sub-folders train and test (or val) are
    its splits. If all pictures are gray, C = 1; otherwise all become RGB. Transparent pixels become white. If the
    pixels take more than 1 GiB, pictures are decoded when they are indexed.

    Args:
        path: the folder.
        image_size: side to resize every picture to, after cropping the centered square; None requires equal sizes.

    Raises:
        InputError: for a folder without pictures or with a mixed layout, a broken file, or sizes that differ.
    """
    listed = [_list(part) for part in _parts(path)]
    files = [file for files, _ in listed for file in files]
    headers = [read_header(file) for file in files]
    transparent = [file for file, header in zip(files, headers, strict=True) if header.transparent]
    if transparent:
        warnings.warn(f"{path}: transparent pixels, as in {transparent[0]}, become white", stacklevel=4)
    if image_size is None:
        check_sizes([header.size for header in headers], list(map(str, files)))
    width, height = headers[0].size if image_size is None else (image_size, image_size)
    shape = (max(header.channels for header in headers), height, width)
    rows = [picture_rows(files, shape, image_size) for files, _ in listed]
    codes = _codes(path, [names for _, names in listed])
    train, test, y_train, y_test = rows[0], None, codes[0], None
    if len(rows) == 2:
        test, y_test = rows[1], codes[1]
    return Splits(str(path), "image", train, test, train_labels=y_train, test_labels=y_test, image_size=image_size)


def _parts(path: Path) -> list[Path]:
    """The folders of the splits, training first; the folder itself if it has no splits."""
    roles = {name: role for role, names in _SPLITS.items() for name in names}
    found: dict[str, list[Path]] = {}
    for folder in _folders(path):
        found.setdefault(roles.get(folder.name.lower(), ""), []).append(folder)
    classes = found.pop("", [])
    if not found:
        return [path]
    first = next(iter(found.values()))[0]
    for others in (list(filter(_any_picture, classes)), _pictures(path)):
        if others:
            raise InputError(
                f"{path}: {first.name} is the name of a split, but {others[0].name} is not: keep pictures and classes "
                "in the folders of the splits, or rename the class"
            )
    twice = next((folders for folders in found.values() if len(folders) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: {twice[0].name} and {twice[1].name} are names of the same split: keep one")
    if "train" not in found:
        raise InputError(
            f"{path}: {first.name} is the name of a split, but there is no folder train: add one, or rename "
            f"{first.name}"
        )
    if "test" in found and "val" in found:
        warnings.warn(f"{path}: not used: {found['val'][0].name}", stacklevel=5)
    held_out = found.get("test", found.get("val", []))
    return found["train"] + held_out


def _list(path: Path) -> tuple[list[Path], list[str] | None]:
    """Picture files, and the class of each if they are in sub-folders."""
    here = _pictures(path)
    classes = {folder.name: _pictures(folder) for folder in _folders(path)}
    below = [(file, name) for name, files in classes.items() for file in files]
    if here and below:
        raise InputError(f"{path}: pictures are both in the folder and in {below[0][0].parent}: use one or the other")
    for folder in (inner for outer in _folders(path) for inner in _folders(outer)):
        if _any_picture(folder):
            raise InputError(f"{path}: pictures in {folder} are too deep: move them to the folder of their class")
    if not here and not below:
        raise InputError(f"{path}: has no pictures ({', '.join(_SUFFIXES)}), neither directly nor in sub-folders")
    return (here, None) if here else ([file for file, _ in below], [name for _, name in below])


def _pictures(folder: Path) -> list[Path]:
    return [file for file in _visible(folder) if file.suffix.lower() in _SUFFIXES and file.is_file()]


def _folders(folder: Path) -> list[Path]:
    return [entry for entry in _visible(folder) if entry.is_dir()]


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder}: cannot be read as a folder: {error.strerror}") from None


def _any_picture(folder: Path) -> bool:
    return bool(_pictures(folder)) or any(_any_picture(inner) for inner in _folders(folder) if not inner.is_symlink())


def _codes(path: Path, names: list[list[str] | None]) -> list[Tensor | None]:
    """Labels of each split by the names of its class folders; ``None`` if it, or the training split, has no classes."""
    training = sorted(set(names[0] or ()))
    unknown = sorted(set(names[-1] or ()) - set(training))
    if training and unknown:
        raise InputError(f"{path}: class {unknown[0]!r} is in test but not in train, which has {', '.join(training)}")
    classes = [part for part in names if part and training]
    coded = iter(labels([(np.array(part), len(part), f"{path}: class folders") for part in classes]))
    return [next(coded) if part and training else None for part in names]
