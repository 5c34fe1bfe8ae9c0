"""Unadjusted Langevin dynamics (thesis 3.6)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from adance.configurable import remember, remember_chosen
from adance.energies.energy import Energy, energy_and_gradient
from adance.errors import InputError
from adance.samplers.kernel import SplitKernel
from adance.samplers.record import StepInfo


class LangevinState(NamedTuple):
    """Positions ``(B, *event)``."""

    x: Tensor


class Langevin(SplitKernel):
    """The chain ``x ← x − α∇E(x) + σξ``, whose stationary distribution tends to ``exp(−E/T)``, T = σ²/(2α), as α → 0.

    Set ``noise_std`` σ or ``temperature`` T, not both; with neither, T = 1. ``noise_std=0`` is gradient descent.

    Args:
        steps: Steps of one chain.
        step_size: α, the factor of the gradient of E.
        noise_std: σ, the standard deviation of the noise in one step.
        temperature: T, so that σ = √(2αT).
        bounds: ``(low, high)``: positions are clamped to this range after every step.

    Raises:
        InputError: ``steps``, ``noise_std`` or ``temperature`` is below 0, ``step_size`` not above 0, ``bounds`` not in
            order, or both σ and T are given.
    """

    def __init__(
        self,
        steps: int = 100,
        step_size: float = 1.0,
        noise_std: float | None = None,
        temperature: float | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        if noise_std is not None and temperature is not None:
            raise InputError("Langevin takes noise_std or temperature, not both: T = noise_std²/(2·step_size)")
        finite = all(map(math.isfinite, (step_size, noise_std or 0, temperature or 0)))
        if not (finite and steps >= 0 and step_size > 0 and (noise_std or 0) >= 0 and (temperature or 0) >= 0):
            raise InputError(
                "Langevin needs steps ≥ 0, step_size > 0, noise_std ≥ 0 and temperature ≥ 0, all finite, got "
                f"steps={steps}, step_size={step_size}, noise_std={noise_std}, temperature={temperature}"
            )
        # the config keeps whichever of σ and T was given
        given = self.init_args.copy()
        given.pop("temperature" if noise_std is not None else "noise_std", None)
        if noise_std is None:
            temperature = 1.0 if temperature is None else temperature
            noise_std = math.sqrt(2 * step_size * temperature)
        if bounds is not None and not bounds[0] < bounds[1]:
            raise InputError(f"Langevin needs bounds (low, high) with low < high, got {tuple(bounds)}")
        self.steps, self.step_size, self.noise_std, self.bounds = steps, step_size, noise_std, bounds
        remember(self, given)
        remember_chosen(self, temperature=temperature)

    @property
    def temperature(self) -> float:
        """T = σ²/(2α)."""
        return self.noise_std**2 / (2 * self.step_size)

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> LangevinState:
        """The state of chains at ``x`` ``(B, *event)``."""
        return LangevinState(x)

    def sample_randomness(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
        """ξ ``(B, *event)``; nothing if σ is 0."""
        if self.noise_std == 0:
            return (x.new_zeros(()),)
        return (torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device),)

    def move(self, energy: Energy, state: LangevinState, numbers: tuple[Tensor, ...]) -> tuple[LangevinState, StepInfo]:
        """Move every chain once, with one gradient."""
        values, gradient = energy_and_gradient(energy, state.x)
        x = torch.add(torch.add(state.x, gradient, alpha=-self.step_size), numbers[0], alpha=self.noise_std)
        if self.bounds is not None:
            x = x.clamp(*self.bounds)
        return LangevinState(x), StepInfo(values, gradient.flatten(1).norm(dim=1), None)
