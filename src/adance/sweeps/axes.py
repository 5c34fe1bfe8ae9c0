"""The settings that a sweep varies, their values, and names for the combinations."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from adance.errors import InputError

Values = dict[str, str]
"""One combination: for each setting its value as typed on the command line."""


@dataclass(frozen=True)
class Axis:
    """A setting and its values."""

    key: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Axis":
        """Read ``objective.interval=1,5,10``; commas inside brackets do not separate.

        Raises:
            InputError: The name or a value is missing, or a value is repeated.
        """
        key, equals, listed = text.partition("=")
        key = ".".join(part for part in key.strip().lstrip("-").split(".") if part != "init_args")
        values = tuple(value.strip() for value in _split(listed))
        if not key or not equals or "" in values:
            raise InputError(f"--over {text}: give a setting and its values, as in objective.interval=1,5,10")
        if len(set(map(_number, values))) < len(values):
            raise InputError(f"--over {text}: a value is repeated")
        return cls(key, values)


def combinations(axes: Sequence[Axis]) -> list[Values]:
    """Every combination of the axes' values, the last axis fastest.

    Raises:
        InputError: There is no axis, or two axes vary the same setting.
    """
    keys = [axis.key for axis in axes]
    if not keys:
        raise InputError("a sweep needs at least one --over SETTING=VALUE,VALUE")
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise InputError(f"--over {twice}: given twice; give all its values in one --over")
    return [dict(zip(keys, chosen, strict=True)) for chosen in itertools.product(*(axis.values for axis in axes))]


def short_keys(keys: Sequence[str]) -> dict[str, str]:
    """For each dotted name, its shortest ending that is unique: ``interval`` for objective.interval."""
    counts = Counter(end for key in keys for end in _endings(key))
    return {key: next((end for end in _endings(key) if counts[end] == 1), key) for key in keys}


def run_names(points: Sequence[Values]) -> list[str]:
    """A folder name for each combination: ``interval=5,seed=0``.

    Raises:
        InputError: Two values differ only in characters that a folder name cannot contain.
    """
    short = short_keys(list(points[0]))
    names = [",".join(f"{short[key]}={_safe(value)}" for key, value in point.items()) for point in points]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two combinations would have the same name {twice}; run them as two sweeps")
    return names


def _split(listed: str) -> list[str]:
    """The parts between commas that are outside brackets."""
    depth, parts = 0, [""]
    for letter in listed:
        depth += (letter in "[{(") - (letter in ")}]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def _endings(key: str) -> list[str]:
    parts = key.split(".")
    return [".".join(parts[first:]) for first in range(len(parts) - 1, -1, -1)]


def _safe(value: str) -> str:
    return re.sub(r"[^\w.+-]+", "_", value)[:60].strip("_") or "_"
