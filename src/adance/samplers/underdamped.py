"""Underdamped (kinetic) Langevin dynamics by the BAOAB splitting (Leimkuhler and Matthews 2013)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from adance.energies.energy import Energy, energy_and_gradient
from adance.errors import InputError
from adance.samplers.kernel import Kernel
from adance.samplers.record import StepInfo


class UnderdampedState(NamedTuple):
    """Positions ``(B, *event)``, their energies ``(B,)`` and gradients, and momenta (drawn at the first step)."""

    x: Tensor
    energy: Tensor
    gradient: Tensor
    momentum: Tensor | None = None


class UnderdampedLangevin(Kernel):
    """A discretization of ``dx = v dt``, ``dv = −∇E dt − γv dt + √(2γT) dW``, of mass 1.

    One step: half a kick ``v ← v − ½ε∇E``, half a drift ``x ← x + ½εv``, friction and noise
    ``v ← e^(−γε) v + √(T(1 − e^(−2γε))) ξ``, half a drift, half a kick, with one gradient.

    Not adjusted, but with little bias: on a quadratic energy of curvature k the positions have exactly the variance T/k
    at any ε < 2/√k (and the momenta ``T(1 − kε²/4)``); on others the error in positions is of order ε², and of order ε⁴
    as γ grows.

    Args:
        steps: Steps of one chain.
        step_size: ε, a time: one step moves by ``½ε²`` times the gradient.
        friction: γ > 0; momentum decays over a time of 1/γ.
        temperature: T of the stationary distribution ``exp(−E/T)``.

    Raises:
        InputError: ``steps`` is below 0, or ``step_size``, ``friction`` or ``temperature`` not above 0.
    """

    gradients_at_init = 1

    def __init__(
        self, steps: int = 100, step_size: float = 0.1, friction: float = 1.0, temperature: float = 1.0
    ) -> None:
        finite = all(map(math.isfinite, (step_size, friction, temperature)))
        if not (finite and steps >= 0 and step_size > 0 and friction > 0 and temperature > 0):
            raise InputError(
                "UnderdampedLangevin needs steps ≥ 0, step_size > 0, friction > 0 and temperature > 0, all finite, got "
                f"{steps=}, {step_size=}, {friction=}, {temperature=}"
            )
        self.steps, self.step_size, self.friction, self._temperature = steps, step_size, friction, temperature

    @property
    def temperature(self) -> float:
        """T of the stationary distribution."""
        return self._temperature

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> UnderdampedState:
        """The state of chains at ``x`` ``(B, *event)``; costs one gradient."""
        return UnderdampedState(x, *energy_and_gradient(energy, x))

    def step(
        self, energy: Energy, state: UnderdampedState, generator: torch.Generator | None = None
    ) -> tuple[UnderdampedState, StepInfo]:
        """Move every chain once, with one gradient."""
        x, values, gradient, v = state
        eps, T = self.step_size, self.temperature
        if v is None:
            v = math.sqrt(T) * torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        kept = math.exp(-self.friction * eps)
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        v = torch.add(v, gradient, alpha=-eps / 2)
        x = torch.add(x, v, alpha=eps / 2)
        v = torch.add(kept * v, noise, alpha=math.sqrt(T * (1 - kept**2)))
        x = torch.add(x, v, alpha=eps / 2)
        moved = UnderdampedState(x, *energy_and_gradient(energy, x))
        moved = moved._replace(momentum=torch.add(v, moved.gradient, alpha=-eps / 2))
        return moved, StepInfo(values, gradient.flatten(1).norm(dim=1))
