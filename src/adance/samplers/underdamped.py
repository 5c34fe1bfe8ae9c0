"""Underdamped (kinetic) Langevin dynamics: positions and momenta, with friction and noise."""

import math

import torch
from torch import Tensor

from adance.energies.energy import Energy, energy_and_gradient
from adance.samplers.kernel import ChainState, Kernel, Step, StepInfo, check_settings


class UnderdampedLangevin(Kernel):
    """Underdamped (kinetic) Langevin dynamics by the BAOAB splitting (Leimkuhler and Matthews 2013).

    A discretization of ``dx = v dt``, ``dv = −∇E dt − γv dt + √(2γT) dW``, of mass 1.

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
        check_settings(self, steps=steps, step_size=step_size, friction=friction, temperature=temperature)
        self.steps, self.step_size, self.friction, self.temperature = steps, step_size, friction, temperature

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> ChainState:
        """The state of chains at ``x`` ``(B, *event)``; costs one gradient."""
        return ChainState(x, *energy_and_gradient(energy, x))

    def step(self, energy: Energy, state: ChainState, generator: torch.Generator | None = None) -> Step:
        """Move every chain once, with one gradient."""
        x, values, gradient, v = state.x, state.energy, state.gradient, state.momentum
        eps, T = self.step_size, self.temperature
        if v is None:
            v = math.sqrt(T) * torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        kept = math.exp(-self.friction * eps)
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        v = torch.add(v, gradient, alpha=-eps / 2)
        x = torch.add(x, v, alpha=eps / 2)
        v = torch.add(kept * v, noise, alpha=math.sqrt(T * (1 - kept**2)))
        x = torch.add(x, v, alpha=eps / 2)
        new_values, new_gradient = energy_and_gradient(energy, x)
        v = torch.add(v, new_gradient, alpha=-eps / 2)
        return ChainState(x, new_values, new_gradient, v), StepInfo(values, gradient.flatten(1).norm(dim=1))
