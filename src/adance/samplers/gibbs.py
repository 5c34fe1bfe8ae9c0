"""Gibbs sampling by full conditionals (thesis Algorithm 2.1; Geman and Geman 1984), unit by unit or by blocks."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from adance.energies.energy import Energy
from adance.errors import InputError
from adance.samplers.accept import energies
from adance.samplers.binary_values import check_units, check_values, unit_values
from adance.samplers.kernel import Kernel
from adance.samplers.record import StepInfo

BlockUpdate = Callable[[Tensor, torch.Generator | None], Tensor]
"""``(x, generator) -> x'``: draws some coordinates given the others."""


class GibbsState(NamedTuple):
    """Positions ``(B, *event)``, their energies ``(B,)``, and where a systematic scan continues."""

    x: Tensor
    energy: Tensor
    place: int = 0


class Gibbs(Kernel):
    """Draws coordinates one after another, each from its conditional distribution given all others.

    The conditional distribution comes from the first of these that the energy has. ``units`` are indices ``(m,)`` into
    the flattened event.

    * ``conditional(x, units, generator) -> (B, m)``: samples of their values, discrete or not, at T = 1;
    * ``conditional_logits(x, units) -> (B, m)``: for units with two values, the log-odds of the upper one at T = 1;
    * the energy itself, for units with two values: from the energy of ``x`` with one unit flipped, at one energy per
      draw.

    Args:
        steps: Steps of one chain.
        temperature: T of the stationary distribution ``exp(−E/T)``; must be 1 for an energy with ``conditional``.
        scan: ``systematic``: coordinates in turn, where each step continues where the last one ended. ``random``:
            coordinates drawn uniformly, the same for all chains.
        updates: Coordinates drawn in one step; by default as many as an event has.
        values: The two values of a unit, lower first: (0, 1) or (−1, 1). By default ``(energy.low, 1)``, or (0, 1) if
            the energy has no ``low``.

    Raises:
        InputError: ``steps`` is below 0, ``temperature`` not above 0, ``updates`` below 1, or ``scan`` unknown.
    """

    exact = True
    gradients_per_step = 0

    def __init__(
        self,
        steps: int = 100,
        temperature: float = 1.0,
        scan: Literal["systematic", "random"] = "systematic",
        updates: int | None = None,
        values: tuple[float, float] | None = None,
    ) -> None:
        if not (steps >= 0 and temperature > 0 and (updates is None or updates >= 1)):
            raise InputError(
                f"Gibbs needs steps ≥ 0, temperature > 0 and updates ≥ 1, got {steps=}, {temperature=}, {updates=}"
            )
        if scan not in ("systematic", "random"):
            raise InputError(f"unknown scan {scan!r}: use systematic or random")
        self.steps, self._temperature, self.scan, self.updates = steps, temperature, scan, updates
        self.values = None if values is None else check_values(values)

    @property
    def temperature(self) -> float:
        """T of the stationary distribution."""
        return self._temperature

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> GibbsState:
        """The state of chains at ``x`` ``(B, *event)``; costs one energy.

        Raises:
            InputError: A unit has neither of the two values, or ``temperature`` is not 1 and the energy has
                ``conditional``.
        """
        if not hasattr(energy, "conditional"):
            check_units(x, unit_values(energy, self.values), "Gibbs")
        elif self.temperature != 1:
            raise InputError(
                f"temperature={self.temperature}, but the conditionals of this energy are for temperature 1"
            )
        return GibbsState(x, energies(energy, x))

    @torch.no_grad()
    def step(
        self, energy: Energy, state: GibbsState, generator: torch.Generator | None = None
    ) -> tuple[GibbsState, StepInfo]:
        """Draw ``updates`` coordinates in every chain."""
        x, values, place = state
        order = self._scan(x, place, generator)
        for units in order:
            if hasattr(energy, "conditional"):
                x = put(x, units, energy.conditional(x, units, generator))
            elif hasattr(energy, "conditional_logits"):
                x = draw_units(energy, x, units, unit_values(energy, self.values), self.temperature, generator)
            else:
                x, values = self._flip(energy, x, values, units, generator)
        if hasattr(energy, "conditional") or hasattr(energy, "conditional_logits"):
            values = energies(energy, x)
        return GibbsState(x, values, (place + len(order)) % x[0].numel()), StepInfo(state.energy)

    def _scan(self, x: Tensor, place: int, generator: torch.Generator | None) -> Sequence[Tensor]:
        """Indices ``(1,)`` of the coordinates to draw, in order."""
        d = x[0].numel()
        n = self.updates or d
        if self.scan == "systematic":
            return torch.split(torch.arange(place, place + n, device=x.device) % d, 1)
        return torch.split(torch.randint(d, (n,), generator=generator, device=x.device), 1)

    def _flip(
        self, energy: Energy, x: Tensor, values: Tensor, units: Tensor, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Flip one unit with probability ``σ((E(x) − E(flipped))/T)``."""
        both = sum(unit_values(energy, self.values))
        flipped = put(x, units, both - x.flatten(1)[:, units])
        other = energies(energy, flipped)
        u = torch.rand(len(x), generator=generator, dtype=x.dtype, device=x.device)
        taken = u < torch.sigmoid((values - other) / self.temperature)
        return torch.where(taken.view(-1, *[1] * (x.ndim - 1)), flipped, x), torch.where(taken, other, values)


class BlockGibbs(Kernel):
    """Draws blocks of coordinates one after another, each from its conditional distribution given all others.

    Without ``blocks``, they come from the first of these that the energy has:

    * ``block_gibbs(x, generator, temperature) -> x'``: its own sweep (a restricted Boltzmann machine goes to its
      hidden units and back);
    * ``blocks()``, sets of units that are independent given the others, with ``conditional_logits`` (see
      :class:`Gibbs`).

    Args:
        steps: Steps of one chain; each draws every block once.
        blocks: The updates, each ``(x, generator) -> x'``, which must leave ``exp(−E/T)`` invariant.
        temperature: T of the stationary distribution.

    Raises:
        InputError: ``steps`` is below 0, or ``temperature`` not above 0.
    """

    exact = True
    gradients_per_step = 0

    def __init__(self, steps: int = 100, blocks: Sequence[BlockUpdate] | None = None, temperature: float = 1.0) -> None:
        if not (steps >= 0 and temperature > 0):
            raise InputError(f"BlockGibbs needs steps ≥ 0 and temperature > 0, got {steps=}, {temperature=}")
        self.steps, self.blocks, self._temperature = steps, blocks, temperature

    @property
    def temperature(self) -> float:
        """T of the stationary distribution."""
        return self._temperature

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> GibbsState:
        """The state of chains at ``x`` ``(B, *event)``; costs one energy.

        Raises:
            InputError: ``blocks`` is ``None`` and the energy has no blocks.
        """
        known = hasattr(energy, "block_gibbs") or (hasattr(energy, "blocks") and hasattr(energy, "conditional_logits"))
        if self.blocks is None and not known:
            raise InputError(
                f"{getattr(energy, '__name__', type(energy).__name__)} has neither block_gibbs() nor blocks() and "
                "conditional_logits(): pass blocks to BlockGibbs, or use Gibbs"
            )
        return GibbsState(x, energies(energy, x))

    @torch.no_grad()
    def step(
        self, energy: Energy, state: GibbsState, generator: torch.Generator | None = None
    ) -> tuple[GibbsState, StepInfo]:
        """Draw every block once in every chain; costs one energy, for the statistics."""
        x = self._sweep(energy, state.x, generator)
        return GibbsState(x, energies(energy, x)), StepInfo(state.energy)

    def _sweep(self, energy: Any, x: Tensor, generator: torch.Generator | None) -> Tensor:
        if self.blocks is not None:
            for update in self.blocks:
                x = update(x, generator)
            return x
        if hasattr(energy, "block_gibbs"):
            swept: Tensor = energy.block_gibbs(x, generator, self.temperature)
            return swept
        for units in energy.blocks():
            x = draw_units(energy, x, units, unit_values(energy), self.temperature, generator)
        return x


def put(x: Tensor, units: Tensor, values: Tensor) -> Tensor:
    """``x`` ``(B, *event)`` with ``values`` ``(B, m)`` at ``units`` ``(m,)`` of the flattened event."""
    return x.flatten(1).index_copy(1, units, values).view_as(x)


def draw_units(
    energy: Any,
    x: Tensor,
    units: Tensor,
    values: tuple[float, float],
    temperature: float,
    generator: torch.Generator | None,
) -> Tensor:
    """``x`` ``(B, *event)`` with ``units`` ``(m,)``, independent given the others, drawn by their log-odds."""
    logits = energy.conditional_logits(x, units) / temperature
    u = torch.rand(logits.shape, generator=generator, dtype=x.dtype, device=x.device)
    low, high = values
    return put(x, units, torch.where(u < logits.sigmoid(), high, low).to(x.dtype))
