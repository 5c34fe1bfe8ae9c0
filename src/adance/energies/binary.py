"""Binary units: ±1 ("spin") or 0/1 ("bit"), and what a Gibbs sampler needs from their energy.

An energy may implement either of two protocols:

- :class:`Conditionals`: it knows the distribution of each unit given all others, and which units may be drawn together.
  Gibbs samplers use it.
- :class:`BlockSampled`: it has its own sweep that leaves ``exp(−E/T)`` invariant, like a restricted Boltzmann machine,
  which goes to its hidden units and back.
"""

import math
from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from adance.energies.energy import Energy, evaluate
from adance.errors import InputError

UnitKind = Literal["spin", "bit"]
"""``spin``: values −1 and 1; ``bit``: values 0 and 1."""


@runtime_checkable
class Conditionals(Protocol):
    """An energy of binary units that knows the distribution of each given all others."""

    low: float
    """The lower value of a unit, −1 or 0; the upper is 1."""

    def conditional_logits(self, x: Tensor, units: Tensor | None = None) -> Tensor:
        """``log p(xᵢ = 1 | rest) − log p(xᵢ = low | rest)`` at T = 1; divide it by another T.

        Args:
            x: Units ``(B, *event)``; unit i itself has no effect on its own log-odds.
            units: Indices ``(m,)`` into the flattened event.

        Returns:
            ``(B, m)``; without ``units`` those of all, in the shape of ``x``.
        """
        ...

    def blocks(self) -> Sequence[Tensor]:
        """Index sets that together contain every unit once; units in one set are independent given all others."""
        ...


@runtime_checkable
class BlockSampled(Protocol):
    """An energy with its own sweep."""

    def block_gibbs(self, x: Tensor, generator: torch.Generator | None = None, temperature: float = 1.0) -> Tensor:
        """``x`` ``(B, *event)`` after one sweep that leaves ``exp(−E/T)`` invariant; ``x`` itself is not modified."""
        ...


def low_value(units: str) -> float:
    """The lower value of a unit of this kind.

    Raises:
        InputError: ``units`` is neither ``spin`` nor ``bit``.
    """
    if units not in ("spin", "bit"):
        raise InputError(f"unknown units {units!r}: use 'spin' (−1 and 1) or 'bit' (0 and 1)")
    return -1.0 if units == "spin" else 0.0


def count_units(event_shape: Sequence[int]) -> int:
    """The number of units in an event.

    Raises:
        InputError: ``event_shape`` contains a 0.
    """
    n = math.prod(event_shape)
    if n < 1:
        raise InputError(f"events of shape {tuple(event_shape)} have no units: each axis must be at least 1")
    return n


def flatten_units(x: Tensor, units: int, model: str) -> Tensor:
    """``x`` ``(B, *event)`` as ``(B, units)``.

    Raises:
        InputError: Events have another number of units.
    """
    flat = x.flatten(1)
    if flat.shape[1] != units:
        raise InputError(f"{model} has {units} units, but events of shape {tuple(x.shape[1:])} have {flat.shape[1]}")
    return flat


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


def draw_units(logits: Tensor, low: float, generator: torch.Generator | None = None, high: float = 1.0) -> Tensor:
    """Units that are ``high`` with probability ``σ(logits)`` and ``low`` otherwise, in the shape of ``logits``."""
    u = torch.rand(logits.shape, generator=generator, dtype=logits.dtype, device=logits.device)
    return torch.where(u < logits.sigmoid(), high, low).to(logits.dtype)


def log_sum_units(field: Tensor, low: float) -> Tensor:
    """``log Σₕ exp(h·field)`` over both values of a unit: softplus for bits, log 2cosh for spins."""
    return torch.logaddexp(field, low * field)


def all_states(n: int, low: float, like: Tensor | None = None, most: int = 24) -> Tensor:
    """Every state ``(2ⁿ, n)`` of n units, in binary order (unit 0 is the highest digit), on the device of ``like``.

    Raises:
        InputError: ``n`` is above ``most``.
    """
    if n > most:
        raise InputError(f"{n} units have 2^{n} states: at most {most} units can be enumerated")
    like = torch.empty(0) if like is None else like
    digits = torch.arange(n - 1, -1, -1, device=like.device)
    bits = (torch.arange(2**n, device=like.device)[:, None] >> digits) & 1
    return low + (1 - low) * bits.to(like.dtype)


def flip_logits(energy: Energy, x: Tensor, units: Tensor | None = None, low: float = 0.0) -> Tensor:
    """Conditional logits of any energy of binary units, ``E(xᵢ = low) − E(xᵢ = 1)``, at two energies per unit.

    Args:
        energy: Any callable ``(B, *event) -> (B,)``.
        x: Units ``(B, *event)``.
        units: Indices ``(m,)`` into the flattened event.
        low: The lower value of a unit.

    Returns:
        ``(B, m)``; without ``units`` those of all, in the shape of ``x``.
    """
    flat = x.flatten(1)
    every = torch.arange(flat.shape[1], device=x.device)
    at = (every if units is None else units)[:, None] == every
    at_low, at_high = (
        evaluate(energy, torch.where(at, value, flat[:, None]).view(-1, *x.shape[1:])).view(len(x), -1)
        for value in (low, 1.0)
    )
    return (at_low - at_high).view(x.shape) if units is None else at_low - at_high
