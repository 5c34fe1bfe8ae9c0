"""Well-known image sets through Hugging Face `datasets`, from the hub or from a local copy."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adance.data.arrays import Rows, make_splits, read_array
from adance.data.pictures import pixels, stack
from adance.data.splits import Splits
from adance.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class HubSet:
    """Where a set is stored, and the format of its rows.

    Attributes:
        repository: dataset id on the hub.
        image: name of the image column.
        label: name of the label column, None if there is none.
        crop: side in pixels of the centered square to crop first, None for the whole image.
        size: default side to resize images to, None to leave them as they are.
    """

    repository: str
    image: str
    label: str | None
    crop: int | None = None
    size: int | None = None


HUB = {
    "mnist": HubSet("ylecun/mnist", "image", "label"),
    "fashion-mnist": HubSet("zalando-datasets/fashion_mnist", "image", "label"),
    "cifar10": HubSet("uoft-cs/cifar10", "img", "label"),
    "celeba": HubSet("flwrlabs/celeba", "image", None, crop=140, size=32),
}
"""mnist, fashion-mnist (1, 28, 28), cifar10 (3, 32, 32), celeba (centered 140 x 140 of the aligned faces, resized to
(3, 32, 32)); each with the train and test splits of its repository."""


def load_hub(name: str, source: str | Path | None = None, *, image_size: int | None = None) -> Splits:
    """Load an image set by name.

    Args:
        name: key of `HUB`.
        source: a folder of parquet files, laid out as the hub's, whose names begin with train and test. Without it,
            `$ADANCE_DATA/<name>.npz` or the folder `$ADANCE_DATA/<name>` is used if it exists, otherwise the hub.
        image_size: side to resize to instead of the set's own.

    Raises:
        InputError: if `datasets` is not installed, the source cannot be read, or the hub cannot be reached.
    """
    if name not in HUB:
        raise InputError(f"hub set {name!r} is unknown: use {', '.join(HUB)}")
    entry, local = HUB[name], _local(name, source)
    if local is not None and local.suffix == ".npz":
        if image_size is not None:
            raise InputError(f"image_size does not apply to the array file {local}: resize its images, or remove it")
        return replace(read_array(local), name=name)
    size = image_size or entry.size
    splits = _open(name, entry, local)
    train, test = (_rows(splits[split], entry, f"{name} {split}", size) for split in ("train", "test"))
    return replace(make_splits(name, train, test), image_size=size)


def _local(name: str, source: str | Path | None) -> Path | None:
    if source is not None:
        return Path(source)
    if not os.environ.get("ADANCE_DATA"):
        return None
    root = Path(os.environ["ADANCE_DATA"])
    return next((path for path in (root / f"{name}.npz", root / name) if path.exists()), None)


def _open(name: str, entry: HubSet, local: Path | None) -> dict[str, Any]:
    try:
        import datasets
    except ImportError:
        raise InputError(f"{name}: needs the datasets library: pip install adance[datasets]") from None
    files = None if local is None else {split: _parquet(local, split) for split in ("train", "test")}
    try:
        loaded = (
            datasets.load_dataset("parquet", data_files=files) if files else datasets.load_dataset(entry.repository)
        )
        return {split: loaded[split] for split in ("train", "test")}
    # The library, its HTTP client and its file readers fail in many ways; all mean that the source is unusable.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        place = f"hub set {entry.repository}" if local is None else str(local)
        raise InputError(
            f"{name}: {place} cannot be loaded ({type(error).__name__}: {reason}); "
            "use a local .npz or image folder, or set ADANCE_DATA to a folder with a copy"
        ) from None


def _parquet(folder: Path, split: str) -> list[str]:
    files = sorted(str(file) for file in folder.rglob(f"{split}*.parquet"))
    if not files:
        raise InputError(f"{folder}: holds no {split}*.parquet, but needs parquet files for train and test")
    return files


def _rows(split: Any, entry: HubSet, where: str, size: int | None) -> Rows:
    """Images (N, C, H, W) uint8 and labels (N,) of one split."""
    missing = [column for column in (entry.image, entry.label) if column and column not in split.column_names]
    if missing:
        raise InputError(f"{where}: has no column {missing[0]!r}, only {', '.join(split.column_names)}")
    if len(split) == 0:
        raise InputError(f"{where}: holds no rows, but needs at least one")
    arrays, names = [], []
    for row, picture in enumerate(_pictures(split, entry.image, where)):
        names.append(f"{where} row {row}")
        arrays.append(pixels(_center(picture, entry.crop, names[-1]), names[-1], size))
    y = None if entry.label is None else np.array(list(split[entry.label]), dtype=object)
    return Rows(stack(arrays, names).numpy(), y, where, where)


def _pictures(split: Any, column: str, where: str) -> Iterable["Image"]:
    import datasets

    try:
        for row in split.select_columns([column]).cast_column(column, datasets.Image()):
            yield row[column]
    # Decoding fails in as many ways as there are picture formats.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(f"{where}: column {column!r} holds no readable images ({reason})") from None


def _center(picture: "Image", crop: int | None, where: str) -> "Image":
    if crop is None:
        return picture
    left, top = (picture.width - crop) // 2, (picture.height - crop) // 2
    if left < 0 or top < 0:
        size = f"{picture.width} x {picture.height}"
        raise InputError(f"{where}: is {size} pixels (width x height), smaller than the crop of {crop} x {crop}")
    return picture.crop((left, top, left + crop, top + crop))
