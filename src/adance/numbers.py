"""Checks of numbers that users give."""

import math
from numbers import Integral, Real
from typing import TypeVar

from adance.errors import InputError

T = TypeVar("T")


def is_whole(number: object) -> bool:
    """Whether it is a whole number, numpy's too, and not a truth value."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def whole(number: T) -> T | int:
    """A whole number as Python's own ``int``, and anything else as it is."""
    return int(number) if is_whole(number) else number  # type: ignore[call-overload]


def check_count(name: str, number: object, least: int = 1) -> None:
    """Check that ``number`` is a whole number of at least ``least``.

    Raises:
        InputError: It is not; the message calls it ``name``.
    """
    if not (is_whole(number) and least <= number < 2**31):  # type: ignore[operator]
        raise InputError(f"{name} must be a whole number of at least {least}, got {number!r}")


def check_real(name: str, number: object, least: float = -math.inf) -> None:
    """Check that ``number`` is finite and at least ``least``.

    Raises:
        InputError: It is not; the message calls it ``name``.
    """
    is_real = isinstance(number, Real) and not isinstance(number, bool)
    if not (is_real and math.isfinite(number) and number >= least):  # type: ignore[arg-type, operator]
        bound = "" if least == -math.inf else f" of at least {least:g}"
        raise InputError(f"{name} must be a finite number{bound}, got {number!r}")
