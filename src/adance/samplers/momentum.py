"""Langevin dynamics with momentum; without noise it is stochastic gradient descent with momentum (thesis chapter 6)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from adance.energies.energy import Energy, energy_and_gradient
from adance.errors import InputError
from adance.samplers.kernel import Kernel
from adance.samplers.record import StepInfo


class MomentumState(NamedTuple):
    """Positions and velocities, each ``(B, *event)``."""

    x: Tensor
    momentum: Tensor


class MomentumLangevin(Kernel):
    """The chain ``v ← μv − α∇E(x) + σξ``, ``x ← x + v``, from rest.

    Without noise (the default) it is SGD with momentum, for approximate samples from random starts. With
    noise its stationary distribution tends to ``exp(−E/T)``, T = σ²/(2α(1 − μ)), as α → 0; on a quadratic energy of
    curvature k the variance is ``(T/k) / (1 − αk/(2(1 + μ)))``, and there α must stay below ``2(1 + μ)/k``. With μ = 0
    it is :class:`Langevin`.

    Args:
        steps: Steps of one chain.
        step_size: α, the factor of the gradient of E.
        momentum: μ, the share of the velocity that is kept, in [0, 1).
        noise_std: σ, the standard deviation of the noise in one step; set it or the temperature, not both. With
            neither there is no noise.
        temperature: T, so that σ = √(2αT(1 − μ)).
        bounds: ``(low, high)``: positions are clamped to this range after every step.

    Raises:
        InputError: ``steps``, ``noise_std`` or ``temperature`` is below 0, ``step_size`` not above 0, ``momentum``
            outside [0, 1), ``bounds`` not in order, or both σ and T are given.
    """

    def __init__(
        self,
        steps: int = 100,
        step_size: float = 0.1,
        momentum: float = 0.9,
        noise_std: float | None = None,
        temperature: float | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        if noise_std is not None and temperature is not None:
            raise InputError("MomentumLangevin takes noise_std or temperature, not both")
        finite = all(map(math.isfinite, (step_size, noise_std or 0, temperature or 0)))
        in_range = steps >= 0 and step_size > 0 and 0 <= momentum < 1
        if not (finite and in_range and (noise_std or 0) >= 0 and (temperature or 0) >= 0):
            raise InputError(
                "MomentumLangevin needs steps ≥ 0, step_size > 0, momentum in [0, 1), noise_std ≥ 0 and temperature ≥ "
                f"0, all finite, got {steps=}, {step_size=}, {momentum=}, {noise_std=}, {temperature=}"
            )
        if bounds is not None and not bounds[0] < bounds[1]:
            raise InputError(f"MomentumLangevin needs bounds (low, high) with low < high, got {tuple(bounds)}")
        if noise_std is None:
            noise_std = math.sqrt(2 * step_size * (temperature or 0.0) * (1 - momentum))
        self.steps, self.step_size, self.momentum = steps, step_size, momentum
        self.noise_std, self.bounds = noise_std, bounds

    @property
    def temperature(self) -> float:
        """T = σ²/(2α(1 − μ))."""
        return self.noise_std**2 / (2 * self.step_size * (1 - self.momentum))

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> MomentumState:
        """The state of chains at ``x`` ``(B, *event)``, at rest."""
        return MomentumState(x, torch.zeros_like(x))

    def step(
        self, energy: Energy, state: MomentumState, generator: torch.Generator | None = None
    ) -> tuple[MomentumState, StepInfo]:
        """Move every chain once, with one gradient."""
        x, v = state
        values, gradient = energy_and_gradient(energy, x)
        v = torch.add(self.momentum * v, gradient, alpha=-self.step_size)
        if self.noise_std > 0:
            noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
            v.add_(noise, alpha=self.noise_std)
        x = x + v
        if self.bounds is not None:
            x.clamp_(*self.bounds)
        return MomentumState(x, v), StepInfo(values, gradient.flatten(1).norm(dim=1))
