"""Rows as they were read, completed: a held-out part, a transform, and the last checks."""

import math
import warnings
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from adance.data.moments import Moments, column_moments
from adance.data.rows import AnyRows, chunks, rows_per_chunk, take, value_range
from adance.data.toys2d import Toy
from adance.data.transforms import ImageScale, Kind, Standardize, Transform
from adance.errors import InputError

HELD_OUT = 0.1
"""The default fraction of rows that are held out."""

DARK = 64
"""Bytes whose maximum is below this are probably on another scale."""


@dataclass(frozen=True, eq=False)
class Splits:
    """Rows in raw units, as read.

    Attributes:
        name: name of the rows in messages and in the `Dataset`.
        kind: "image" or "vector".
        train: rows (N, *event) in the order of the source.
        test: held-out rows (M, *event), None if the source has no test split.
        transform: raw to model units, None to fit it to the rows.
        train_labels: (N,) int64 or None.
        test_labels: (M,) int64 or None.
        density: exact distribution of the rows, if known.
        image_size: side that images were resized to, None if they were not.
        columns: names of a table's features, None without names.
    """

    name: str
    kind: Kind
    train: AnyRows
    test: AnyRows | None = None
    transform: Transform | None = None
    train_labels: Tensor | None = None
    test_labels: Tensor | None = None
    density: Toy | None = None
    image_size: int | None = None
    columns: tuple[str, ...] | None = None


def complete(splits: Splits, held_out: float, seed: int) -> Splits:
    """Add a test split and a transform to splits that lack them.

    The test split is a random fraction of the rows. The transform is fitted to the remaining training rows.

    Args:
        splits: rows to split.
        held_out: fraction in (0, 1); at least one row goes to each side.
        seed: seed of the permutation.

    Raises:
        InputError: for fewer than two rows, a fraction outside (0, 1), or images whose values fit no known range.
    """
    n = len(splits.train)
    if not 0 < held_out < 1:
        raise InputError(f"held_out must be between 0 and 1, got {held_out}")
    if n < 2:
        raise InputError(f"{splits.name}: {n} training row(s), but at least 2 are needed")
    if splits.test is not None:
        if held_out != HELD_OUT:
            warnings.warn(
                f"{splits.name}: held_out={held_out} is not used, since the data have a test split", stacklevel=4
            )
        return replace(splits, transform=splits.transform or _fit_transform(splits, None))
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    n_test = min(n - 1, max(1, round(held_out * n)))
    train, test = order[n_test:], order[:n_test]
    x, labels = splits.train, splits.train_labels
    y_train, y_test = (None if labels is None else labels[rows] for rows in (train, test))
    transform = splits.transform or _fit_transform(splits, train)
    return replace(
        splits, train=take(x, train), test=take(x, test), train_labels=y_train, test_labels=y_test, transform=transform
    )


def _fit_transform(splits: Splits, training: Tensor | None) -> Transform:
    """The transform of the rows to model units.

    Args:
        splits: rows.
        training: indices of those to train on; ``None`` for all of `train`.

    Raises:
        InputError: for images whose values fit no known range.
    """
    if splits.kind == "vector":
        if training is not None and len(splits.train) > rows_per_chunk(splits.train.shape):
            training = training.sort().values  # so that the disk is read in order
        moments = column_moments(splits.train, training)
        _warn_of_constants(splits, moments)
        return Standardize.of(moments)
    parts = [rows for rows in (splits.train, splits.test) if rows is not None]
    if splits.train.dtype == torch.uint8 and max(value_range(rows)[1] for rows in parts) == 1:
        raise InputError(
            f"{splits.name}: integer images hold only 0 and 1, almost black on the scale 0..255: "
            "multiply them by 255, or store them as bool"
        )
    return image_scale(splits.name, *parts)


def _warn_of_constants(splits: Splits, moments: Moments) -> None:
    constant = moments.constant.nonzero().flatten().tolist()
    if constant:
        named = ", ".join(repr(splits.columns[i]) if splits.columns else str(i + 1) for i in constant)
        warnings.warn(
            f"{splits.name}: column {named:.200} has the same value in all training rows, so there is no density to "
            "learn: leave it out",
            stacklevel=2,
        )


def in_range(name: str, rows: AnyRows, transform: Transform) -> None:
    """Checks that rows (B, *event) in data units are finite in float32 in model units.

    Raises:
        InputError: naming the first row that is too far outside the training rows.
    """
    first = 0
    for part in chunks(rows):
        finite = transform.to_model(part).flatten(1).isfinite().all(1)
        if not finite.all():
            row = first + int(finite.logical_not().nonzero()[0])
            raise InputError(
                f"{name}: held-out or scored row {row} is not finite after it is standardized by the training rows"
            )
        first += len(part)


def image_scale(name: str, *parts: AnyRows, expected: Transform | None = None) -> Transform:
    """The scale of image values.

    Bytes are on 0..255, booleans on 0..1, floats on [-1, 1] if any is negative and on [0, 1] otherwise.

    Args:
        name: name of the images in messages.
        parts: raw images (N, C, H, W) on one scale.
        expected: the scale of a trained model, preferred if the values fit it.

    Raises:
        InputError: for floats outside [-1, 1], naming the range found.
    """
    ranges = [value_range(rows) for rows in parts]
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    event_size = math.prod(parts[0].shape[1:])
    if expected is not None and _fits(expected, parts, low, high):
        _warn_of_units(name, expected, low, high)
        return expected
    if parts[0].dtype == torch.bool:
        return ImageScale(0, 1, 2, event_size)
    if parts[0].dtype == torch.uint8:
        found = ImageScale(0, 255, 256, event_size)
        _warn_of_units(name, found, low, high)
        return found
    if low < -1 or high > 1:
        raise InputError(
            f"{name}: float images range over [{low:.9g}, {high:.9g}], but must be in [0, 1] or [-1, 1], "
            "or be integers 0..255"
        )
    return ImageScale(-1.0 if low < 0 else 0.0, 1.0, None, event_size)


def _warn_of_units(name: str, scale: Transform, low: float, high: float) -> None:
    """Warn if values fit the scale, but look as if they were on another one."""
    if not isinstance(scale, ImageScale):
        return
    if scale.levels is None and scale.low < 0 <= low:
        warnings.warn(
            f"{name}: no value is below 0, but the model was trained on images in [-1, 1]; the values are not "
            "rescaled: if 0 is black, pass 2x - 1",
            stacklevel=2,
        )
    if scale.levels == 256 and high < DARK:
        warnings.warn(
            f"{name}: integer images reach only {high:.0f} on the scale 0..255 and are nearly black; if {high:.0f} is "
            "white, multiply them",
            stacklevel=2,
        )


def _fits(scale: Transform, parts: tuple[AnyRows, ...], low: float, high: float) -> bool:
    """Whether values fit the scale: quantized values need a quantized scale, and floats in [-1, 1] do not."""
    if not isinstance(scale, ImageScale):
        return True
    if low < scale.low or high > scale.high:
        return False
    if scale.levels is None:
        return parts[0].dtype.is_floating_point
    if parts[0].dtype.is_floating_point:
        return high > 1 and all(bool((p == p.round()).all()) for rows in parts for p in chunks(rows))
    return (parts[0].dtype == torch.bool) == (scale.levels == 2)
