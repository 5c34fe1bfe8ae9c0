"""The description of a run's data in its ``data.json``, checked when it is read."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from adance.data.transforms import ImageScale, Standardize, transform_from_state
from adance.errors import InputError
from adance.numbers import check_count
from adance.signatures import accepts, in_words

TYPES: dict[str, Any] = {
    "kind": Literal["image", "vector"],
    "event_shape": list[int],
    "transform": dict[str, Any],
    "name": str,
    "n_train": int,
    "n_test": int,
    "image_size": int | None,
    "columns": list[str] | None,
    "labels": int,
    "pixels": dict[str, Any],
    "mean": list[float],
    "std": list[float],
}


def check_types(held: Mapping[str, Any], types: Mapping[str, Any], where: Path) -> None:
    """Check the types of the values in ``held`` that ``types`` lists by name.

    Raises:
        InputError: A value has the wrong type; the message names the file ``where`` and the key.
    """
    for name, hint in types.items():
        if name in held and not accepts(hint, held[name]):
            raise InputError(f"{where}: {name} must be {in_words(hint)}, got {held[name]!r}")


def check_description(held: Mapping[str, Any], where: Path) -> None:
    """Check the shape and units of the data; ``held`` has at least ``kind``, ``event_shape`` and ``transform``.

    Raises:
        InputError: A value has the wrong type or does not fit the others; the message names the file ``where`` and the
            key.
    """
    check_types(held, TYPES, where)
    shape = held["event_shape"]
    if len(shape) != (3 if held["kind"] == "image" else 1):
        wanted = "[channels, height, width] for images" if held["kind"] == "image" else "[columns] for vectors"
        raise InputError(f"{where}: event_shape must be {wanted}, got {shape}")
    for length in shape:
        check_count(f"{where}: event_shape", length)
    try:
        transform = transform_from_state(held["transform"])
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if isinstance(transform, ImageScale) and not transform.low < transform.high:
        raise InputError(f"{where}: transform must have low < high, got {held['transform']}")
    lengths = {name: held[name] for name in ("mean", "std") if held["kind"] == "vector" and name in held}
    if isinstance(transform, Standardize):
        lengths |= {"transform.mean": transform.mean, "transform.std": transform.std}
    for name, numbers in lengths.items():
        low = 0.0 if name.endswith("std") else -math.inf
        if len(numbers) != math.prod(shape) or not all(math.isfinite(x) and x >= low for x in numbers):
            raise InputError(f"{where}: {name} must be {math.prod(shape)} finite numbers, got {list(numbers)}")
