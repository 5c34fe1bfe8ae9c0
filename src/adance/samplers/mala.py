"""The Metropolis-adjusted Langevin algorithm (thesis 2.1.3.3): exact at any step size."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from adance.energies.energy import Energy, energy_and_gradient
from adance.errors import InputError
from adance.samplers.accept import expand_rows, metropolis_accept_by, where_rows
from adance.samplers.adaptation import initial_step, robbins_monro
from adance.samplers.kernel import SplitKernel
from adance.samplers.record import StepInfo


class MALAState(NamedTuple):
    """Positions ``(B, *event)``, their energies ``(B,)`` and gradients, the step size and how often it was adapted."""

    x: Tensor
    energy: Tensor
    gradient: Tensor
    step_size: Tensor
    updates: Tensor


class MALA(SplitKernel):
    """Proposals ``x' = x − h∇E(x) + √(2hT) ξ``, accepted with probability ``min(1, p(x')q(x|x') / p(x)q(x'|x))``.

    Args:
        steps: Steps of one chain.
        step_size: h, the factor of the gradient of E. Adaptation starts from it.
        temperature: T of the stationary distribution ``exp(−E/T)``.
        target_acceptance: Acceptance rate that adaptation aims for; 0.574 is optimal for smooth distributions in many
            dimensions.
        adaptation: Change of log h per step and unit of acceptance error; later it decays as ``n^(−0.6)``.

    Raises:
        InputError: ``steps`` or ``adaptation`` is below 0, ``step_size`` or ``temperature`` not above 0, or
            ``target_acceptance`` outside (0, 1).
    """

    exact = True
    gradients_at_init = 1

    def __init__(
        self,
        steps: int = 100,
        step_size: float = 0.1,
        temperature: float = 1.0,
        target_acceptance: float = 0.574,
        adaptation: float = 0.2,
    ) -> None:
        finite = all(map(math.isfinite, (step_size, temperature, adaptation)))
        positive = step_size > 0 and temperature > 0
        if not (finite and positive and steps >= 0 and 0 < target_acceptance < 1 and adaptation >= 0):
            raise InputError(
                "MALA needs steps ≥ 0, step_size > 0, temperature > 0, target_acceptance in (0, 1) and adaptation ≥ 0, "
                f"all finite, got {steps=}, {step_size=}, {temperature=}, {target_acceptance=}, {adaptation=}"
            )
        self.steps, self.step_size, self._temperature = steps, step_size, temperature
        self.target_acceptance, self.adaptation = target_acceptance, adaptation

    @property
    def temperature(self) -> float:
        """T of the stationary distribution."""
        return self._temperature

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> MALAState:
        """The state of chains at ``x`` ``(B, *event)``; costs one gradient."""
        return MALAState(x, *energy_and_gradient(energy, x), *initial_step(self.step_size, step_size, x))

    def sample_randomness(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
        """ξ ``(B, *event)``, and uniform numbers ``(B,)`` for acceptance."""
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        return noise, torch.rand(len(x), generator=generator, dtype=x.dtype, device=x.device)

    def move(self, energy: Energy, state: MALAState, numbers: tuple[Tensor, ...]) -> tuple[MALAState, StepInfo]:
        """Move every chain once, with one gradient; a proposal with a non-finite energy is rejected."""
        x, values, gradient, T = state.x, state.energy, state.gradient, self.temperature
        h = expand_rows(state.step_size, x)
        noise, u = numbers
        proposal = x - h * gradient + (2 * h * T).sqrt() * noise
        new_values, new_gradient = energy_and_gradient(energy, proposal)
        # q(x'|x) is the density of the noise that was drawn, q(x|x') that of the noise that would lead back
        back = (x - proposal + h * new_gradient).flatten(1).square().sum(1) / (4 * state.step_size * T)
        forth = noise.flatten(1).square().sum(1) / 2
        taken, probability = metropolis_accept_by(u, (values - new_values) / T + forth - back, new_values)
        moved = state._replace(
            x=where_rows(taken, proposal, x),
            energy=where_rows(taken, new_values, values),
            gradient=where_rows(taken, new_gradient, gradient),
        )
        return moved, StepInfo(values, gradient.flatten(1).norm(dim=1), taken, probability)

    def adapt(self, state: MALAState, info: StepInfo) -> MALAState:
        """Steer log h towards the target acceptance."""
        assert info.probability is not None
        h, n = robbins_monro(state.step_size, state.updates, info.probability, self.target_acceptance, self.adaptation)
        return state._replace(step_size=h, updates=n)
