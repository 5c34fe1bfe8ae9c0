"""The two values of a binary unit."""

from collections.abc import Sequence

from torch import Tensor

from adance.energies.energy import Energy
from adance.errors import InputError


def check_values(values: Sequence[float]) -> tuple[float, float]:
    """The two values of a unit, lower first.

    Raises:
        InputError: There are not two values, or they are not in order.
    """
    if len(values) != 2 or not values[0] < values[1]:
        raise InputError(f"values={tuple(values)} must be two numbers, lower first, such as (0, 1) or (-1, 1)")
    return float(values[0]), float(values[1])


def unit_values(energy: Energy, values: tuple[float, float] | None = None) -> tuple[float, float]:
    """``values`` if given, else ``(energy.low, 1)``, or (0, 1) if the energy has no ``low``."""
    return (float(getattr(energy, "low", 0.0)), 1.0) if values is None else values


def check_units(x: Tensor, values: tuple[float, float], kernel: str) -> None:
    """Raise :class:`InputError` if a unit of ``x`` has neither of ``values``."""
    if not ((x == values[0]) | (x == values[1])).all():
        raise InputError(f"{kernel} samples units of {values[0]:g} or {values[1]:g}, but the starts have other values")
