"""Loads a name, a path or an array as a `Dataset`, or as rows for a trained model."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adance.data.arrays import read_array
from adance.data.dataset import Dataset
from adance.data.folder import read_folder
from adance.data.hub import HUB, load_hub
from adance.data.memory import read_memory
from adance.data.rows import AnyRows, LazyRows
from adance.data.splits import HELD_OUT, Splits, image_scale, in_range
from adance.data.table import read_table
from adance.data.toys2d import TOYS
from adance.data.transforms import Identity, ImageScale, transform_from_state
from adance.errors import InputError
from adance.near import did_you_mean
from adance.randomness import check_seed

NAMES = ("digits", *TOYS, *HUB)
"""Names that `load_data` knows; anything else is a path."""

MAX_SIDE = 8192
"""The largest `image_size`; Pillow refuses files with many more pixels too."""


def load_data(source: Any, *, seed: int = 0, held_out: float = HELD_OUT, image_size: int | None = None) -> Dataset:
    """Loads a data set, checked and ready to train on.

    Args:
        source: one of `NAMES` ("digits", a toy, or a set on the Hugging Face hub), or the path of an .npz, .npy or
            .csv file or of a folder of images. A name wins over a path: write "./digits" for a folder of that name.
            Or the rows themselves: a NumPy array, a torch tensor or a pandas DataFrame, see `Dataset.from_arrays`.
        seed: seed of a toy's samples (50,000 for training and 10,000 for testing) and of the split of other sources.
        held_out: fraction of the rows, in (0, 1), to hold out if the source has no test split.
        image_size: side in pixels that the images of a folder or of a hub set are resized and center-cropped to.

    Raises:
        InputError: for a source that cannot be used.
    """
    check_seed(seed, "the data's seed")
    if image_size is not None and not resizable(source):
        given = repr(str(source)) if _is_name_or_path(source) else "the data in memory"
        raise InputError(f"image_size applies to a folder of images or a hub set, but {given} is neither")
    if image_size is not None and not 1 <= image_size <= MAX_SIDE:
        raise InputError(f"image_size must be at least 1 and at most {MAX_SIDE}, got {image_size}")
    data = Dataset.from_splits(_read(source, seed, image_size), held_out, seed)
    if not _is_name_or_path(source):
        return data
    again = source if source in NAMES else str(Path(source).resolve())
    return replace(data, source={"source": again, "seed": seed, "held_out": held_out, "image_size": image_size})


def load_for_model(source: Any, description: Mapping[str, Any], *, seed: int = 0) -> Tensor:
    """Rows of any source in the units of a trained model, for scoring.

    Images on another scale than the training set (floats in [0, 1] for a model of bytes) are brought to [-1, 1] by
    their own scale; vectors get the training set's mean and deviation.

    Args:
        source: as for `load_data`.
        description: `Dataset.describe()` of the training set.
        seed: seed of a toy's samples.

    Returns:
        Float32 ``(N, *event)`` in the order of the source: all training rows, then all test rows if there are any.

    Raises:
        InputError: for a source that cannot be used, or events of another shape than the model's.
    """
    return rows_for_model(source, description, seed=seed)[:]


def rows_for_model(source: Any, description: Mapping[str, Any], *, seed: int = 0) -> LazyRows:
    """Like `load_for_model`, for sources larger than memory: rows are read and converted when they are indexed."""
    try:
        wanted, transform = tuple(description["event_shape"]), transform_from_state(description["transform"])
        image_size = description.get("image_size") if resizable(source) else None
    except (KeyError, TypeError) as error:
        raise InputError(f"description of the training set is incomplete or malformed: {error!r}") from None
    trained_on = description.get("columns")
    splits = _read(source, seed, image_size, trained_on)
    parts = [splits.train] if splits.test is None else [splits.train, splits.test]
    found = tuple(splits.train.shape[1:])
    if found != wanted:
        raise InputError(f"{splits.name}: events have shape {found}, but the model was trained on {wanted}")
    if splits.columns and trained_on and list(splits.columns) != trained_on:
        raise InputError(
            f"{splits.name}: columns are {', '.join(splits.columns)}, but the model was trained on "
            f"{', '.join(trained_on)}, in that order"
        )
    if splits.kind == "image":
        # A source with a fixed scale (digits) keeps it.
        transform = splits.transform or image_scale(splits.name, *parts, expected=transform)
    else:
        for part in parts:
            in_range(splits.name, part, transform)
    n = sum(map(len, parts))
    return LazyRows(
        (n, *found), torch.float32, lambda rows: transform.to_model(_of_parts(parts, rows)), -math.inf, math.inf
    )


def _of_parts(parts: list[AnyRows], rows: Tensor) -> Tensor:
    """The rows with these indices, counted across one or two parts."""
    if len(parts) == 1:
        return parts[0][rows]
    second, n = rows >= len(parts[0]), len(parts[0])
    found = torch.empty((len(rows), *parts[0].shape[1:]), dtype=parts[0].dtype)
    found[~second], found[second] = parts[0][rows[~second]], parts[1][rows[second] - n]
    return found


def resizable(source: Any) -> bool:
    """Whether `image_size` applies to this source: a hub set or a folder."""
    return _is_name_or_path(source) and (source in HUB or (source not in NAMES and os.path.isdir(source)))


def _is_name_or_path(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _read(source: Any, seed: int, image_size: int | None, columns: list[str] | None = None) -> Splits:
    if not _is_name_or_path(source):
        return read_memory("data", source)
    if source == "digits":
        return load_digits()
    if source in HUB:
        return load_hub(source, image_size=image_size)
    if source in TOYS:
        toy, generator = TOYS[source](), torch.Generator().manual_seed(seed)
        train, test = toy.sample(50_000, generator), toy.sample(10_000, generator)
        return Splits(source, "vector", train, test, transform=Identity(), density=toy)
    path = Path(source)
    # os.path answers False where Path would raise, as for a name that is too long.
    if os.path.isdir(path):
        return read_folder(path, image_size)
    readers: dict[str, Callable[[Path], Splits]]
    readers = {".npz": read_array, ".npy": read_array, ".csv": partial(read_table, columns=columns)}
    reader = readers.get(path.suffix.lower())
    if reader is None or not os.path.isfile(path):
        missing = "not a regular file" if os.path.exists(path) else "no such file"
        problem = missing if reader else "neither a known name nor a readable path"
        problem += did_you_mean(str(source), NAMES)
        raise InputError(
            f"data source {str(source)!r}: {problem}; use a name ({', '.join(NAMES)}) "
            "or the path of a .npz, .npy or .csv file or of a folder of images"
        )
    return reader(path)


def load_digits() -> Splits:
    """The 1,797 digits, 8 x 8 pixels with whole values 0..16: 1,400 to train on and 397 held out.

    The split never changes: it is the permutation of seed 0.
    """
    from sklearn.datasets import load_digits as bunch

    digits = bunch()
    images = torch.from_numpy(digits.images).to(torch.uint8)[:, None]
    labels = torch.from_numpy(digits.target).to(torch.int64)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    train, test = order[:1400], order[1400:]
    scale = ImageScale(0.0, 16.0, 17, 64)
    return Splits("digits", "image", images[train], images[test], scale, labels[train], labels[test])
