"""Unadjusted Langevin dynamics: overdamped (thesis 3.6), and with momentum (thesis chapter 6)."""

import math

import torch
from torch import Tensor

from adance.configurable import remember, remember_chosen
from adance.energies.energy import Energy, energy_and_gradient
from adance.errors import InputError
from adance.samplers.kernel import NOT_NEGATIVE, RANGES, ChainState, Kernel, SplitKernel, Step, StepInfo, check_settings


class Langevin(SplitKernel):
    """The chain ``x ← x − α∇E(x) + σξ``, whose stationary distribution tends to ``exp(−E/T)``, T = σ²/(2α), as α → 0.

    Set ``noise_std`` σ or ``temperature`` T, not both; with neither, T = 1. ``noise_std=0`` is gradient descent.

    Args:
        steps: Steps of one chain.
        step_size: α, the factor of the gradient of E.
        noise_std: σ, the standard deviation of the noise in one step.
        temperature: T, so that σ = √(2αT).
        bounds: ``(low, high)``: positions are clamped to this range after every step. The recorded gradient
            norm is then that of the projected gradient ``(x − clamp(x − α∇E(x)))/α``, which excludes what pushes
            against the bounds.

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
        check_settings(self, steps=steps, step_size=step_size)
        _check_noise(self, noise_std, temperature, bounds)
        # the config keeps whichever of σ and T was given
        given = self.init_args.copy()
        given.pop("temperature" if noise_std is not None else "noise_std", None)
        if noise_std is None:
            temperature = 1.0 if temperature is None else temperature
            noise_std = math.sqrt(2 * step_size * temperature)
        self.steps, self.step_size, self.noise_std, self.bounds = steps, step_size, noise_std, bounds
        self.temperature = noise_std**2 / (2 * step_size)
        remember(self, given)
        remember_chosen(self, temperature=temperature)

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> ChainState:
        """The state of chains at ``x`` ``(B, *event)``."""
        return ChainState(x)

    def sample_randomness(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
        """ξ ``(B, *event)``; nothing if σ is 0."""
        if self.noise_std == 0:
            return (x.new_zeros(()),)
        return (torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device),)

    def move(self, energy: Energy, state: ChainState, numbers: tuple[Tensor, ...]) -> Step:
        """Move every chain once, with one gradient."""
        values, gradient = energy_and_gradient(energy, state.x)
        x = torch.add(torch.add(state.x, gradient, alpha=-self.step_size), numbers[0], alpha=self.noise_std)
        if self.bounds is not None:
            x = x.clamp(*self.bounds)
            # components that push against the bounds do not move the chain
            down = torch.add(state.x, gradient, alpha=-self.step_size).clamp(*self.bounds)
            gradient = (state.x - down) / self.step_size
        return ChainState(x), StepInfo(values, gradient.flatten(1).norm(dim=1), None)


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
        noise_std: σ, absolute; set it or the temperature, not both. With neither there is no noise.
        temperature: T, so that σ = √(2αT(1 − μ)).
        bounds: ``(low, high)``: positions are clamped to it after every step.

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
        check_settings(self, steps=steps, step_size=step_size, momentum=momentum)
        _check_noise(self, noise_std, temperature, bounds)
        if noise_std is None:
            noise_std = math.sqrt(2 * step_size * (temperature or 0.0) * (1 - momentum))
        self.steps, self.step_size, self.momentum = steps, step_size, momentum
        self.noise_std, self.bounds = noise_std, bounds
        self.temperature = noise_std**2 / (2 * step_size * (1 - momentum))

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> ChainState:
        """The state of chains at ``x`` ``(B, *event)``, at rest."""
        return ChainState(x, momentum=torch.zeros_like(x))

    def step(self, energy: Energy, state: ChainState, generator: torch.Generator | None = None) -> Step:
        """Move every chain once, with one gradient."""
        x, v = state.x, state.momentum
        values, gradient = energy_and_gradient(energy, x)
        v = torch.add(self.momentum * v, gradient, alpha=-self.step_size)
        if self.noise_std > 0:
            noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
            v.add_(noise, alpha=self.noise_std)
        x = x + v
        if self.bounds is not None:
            x.clamp_(*self.bounds)
        return ChainState(x, momentum=v), StepInfo(values, gradient.flatten(1).norm(dim=1))


def _check_noise(
    kernel: Kernel, noise_std: float | None, temperature: float | None, bounds: tuple[float, float] | None
) -> None:
    if noise_std is not None and temperature is not None:
        raise InputError(f"{type(kernel).__name__} takes noise_std or temperature, not both: each sets the other")
    check_settings(kernel, RANGES | {"temperature": NOT_NEGATIVE}, noise_std=noise_std, temperature=temperature)
    if bounds is not None and not bounds[0] < bounds[1]:
        raise InputError(f"{type(kernel).__name__} needs bounds (low, high) with low < high, got {tuple(bounds)}")
