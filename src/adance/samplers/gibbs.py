"""Gibbs sampling by full conditionals (thesis Algorithm 2.1; Geman and Geman 1984), unit by unit or by blocks."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from adance.energies.binary import check_units, check_values, draw_units, unit_values
from adance.energies.energy import Energy, energies
from adance.errors import InputError
from adance.samplers.kernel import ChainState, Kernel, Step, StepInfo, check_settings
from adance.samplers.rows import where_rows

BlockUpdate = Callable[[Tensor, torch.Generator | None], Tensor]
"""``(x, generator) -> x'``: draws some coordinates given the others."""


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
        check_settings(self, steps=steps, temperature=temperature, updates=updates)
        if scan not in ("systematic", "random"):
            raise InputError(f"unknown scan {scan!r}: use systematic or random")
        self.steps, self.temperature, self.scan, self.updates = steps, temperature, scan, updates
        self.values = None if values is None else check_values(values)

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> ChainState:
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
        return ChainState(x, energies(energy, x), updates=0)

    @torch.no_grad()
    def step(self, energy: Energy, state: ChainState, generator: torch.Generator | None = None) -> Step:
        """Draw ``updates`` coordinates in every chain."""
        x, values, drawn = state.x, state.energy, state.updates
        d, (low, high) = x[0].numel(), unit_values(energy, self.values)
        n = self.updates or d
        if self.scan == "systematic":
            order = torch.arange(drawn, drawn + n, device=x.device) % d
        else:
            order = torch.randint(d, (n,), generator=generator, device=x.device)
        for units in torch.split(order, 1):
            if hasattr(energy, "conditional"):
                x = put(x, units, energy.conditional(x, units, generator))
            elif hasattr(energy, "conditional_logits"):
                logits = energy.conditional_logits(x, units) / self.temperature
                x = put(x, units, draw_units(logits, low, generator, high))
            else:
                flipped = put(x, units, low + high - x.flatten(1)[:, units])
                other = energies(energy, flipped)
                u = torch.rand(len(x), generator=generator, dtype=x.dtype, device=x.device)
                taken = u < torch.sigmoid((values - other) / self.temperature)
                x, values = where_rows(taken, flipped, x), torch.where(taken, other, values)
        if hasattr(energy, "conditional") or hasattr(energy, "conditional_logits"):
            values = energies(energy, x)
        return ChainState(x, values, updates=drawn + n), StepInfo(state.energy)


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
        check_settings(self, steps=steps, temperature=temperature)
        self.steps, self.blocks, self.temperature = steps, blocks, temperature

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> ChainState:
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
        return ChainState(x, energies(energy, x))

    @torch.no_grad()
    def step(self, energy: Energy, state: ChainState, generator: torch.Generator | None = None) -> Step:
        """Draw every block once in every chain; costs one energy, for the statistics."""
        x = self._sweep(energy, state.x, generator)
        return ChainState(x, energies(energy, x)), StepInfo(state.energy)

    def _sweep(self, energy: Any, x: Tensor, generator: torch.Generator | None) -> Tensor:
        if self.blocks is not None:
            for update in self.blocks:
                x = update(x, generator)
            return x
        if hasattr(energy, "block_gibbs"):
            swept: Tensor = energy.block_gibbs(x, generator, self.temperature)
            return swept
        low, high = unit_values(energy)
        for units in energy.blocks():
            logits = energy.conditional_logits(x, units) / self.temperature
            x = put(x, units, draw_units(logits, low, generator, high))
        return x


def put(x: Tensor, units: Tensor, values: Tensor) -> Tensor:
    """``x`` ``(B, *event)`` with ``values`` ``(B, m)`` at ``units`` ``(m,)`` of the flattened event."""
    return x.flatten(1).index_copy(1, units, values).view_as(x)
