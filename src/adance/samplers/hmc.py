"""Hamiltonian Monte Carlo (thesis Algorithm 2.2; Neal 2011), and its leapfrog integrator."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from adance.energies.energy import Energy, energy_and_gradient
from adance.samplers.accept import metropolis_accept
from adance.samplers.adaptation import AdaptiveKernel
from adance.samplers.kernel import ChainState, Step, StepInfo, check_settings
from adance.samplers.mass import Mass
from adance.samplers.rows import expand_rows

SEARCH = 20
"""Number of first updates in which the step size may double."""

Velocity = Callable[[Tensor], Tensor]
"""From momenta ``(B, *event)`` to velocities ``M⁻¹v``."""


class Phase(NamedTuple):
    """Positions and momenta ``(B, *event)``, and the energies ``(B,)`` and gradients at the positions."""

    x: Tensor
    momentum: Tensor
    energy: Tensor
    gradient: Tensor


def leapfrog(
    energy: Energy,
    x: Tensor,
    momentum: Tensor,
    step_size: float | Tensor,
    steps: int,
    velocity: Velocity | None = None,
    gradient: Tensor | None = None,
) -> Phase:
    """Integrate Hamilton's equations by the leapfrog method, which is reversible and volume-preserving.

    Args:
        energy: The potential.
        x: Positions ``(B, *event)``.
        momentum: Momenta ``(B, *event)``.
        step_size: ε, a number or a tensor that broadcasts against ``x``.
        steps: L ≥ 1; each costs one gradient.
        velocity: From momenta to velocities; by default mass 1.
        gradient: The gradient at ``x``, if known; otherwise it is computed.
    """
    if gradient is None:
        gradient = energy_and_gradient(energy, x)[1]
    momentum = momentum - step_size / 2 * gradient
    for left in reversed(range(steps)):
        x = x + step_size * (momentum if velocity is None else velocity(momentum))
        values, gradient = energy_and_gradient(energy, x)
        momentum = momentum - (step_size if left else step_size / 2) * gradient
    return Phase(x, momentum, values, gradient)


def euler(
    energy: Energy,
    x: Tensor,
    momentum: Tensor,
    step_size: float | Tensor,
    steps: int,
    velocity: Velocity | None = None,
) -> Phase:
    """Integrate Hamilton's equations by Euler's method, for comparison only: not reversible, not volume-preserving.

    Args:
        energy: The potential.
        x: Positions ``(B, *event)``.
        momentum: Momenta ``(B, *event)``.
        step_size: ε.
        steps: L ≥ 1.
        velocity: From momenta to velocities; by default mass 1.
    """
    values, gradient = energy_and_gradient(energy, x)
    for _ in range(steps):
        moved = x + step_size * (momentum if velocity is None else velocity(momentum))
        momentum = momentum - step_size * gradient
        x = moved
        values, gradient = energy_and_gradient(energy, x)
    return Phase(x, momentum, values, gradient)


class HMC(AdaptiveKernel):
    """Momenta ``v ~ N(0, T·M)``, L leapfrog steps, accepted with probability ``min(1, e^((H(x, v) − H(x', v'))/T))``.

    ``H(x, v) = E(x) + ½ vᵀM⁻¹v``, summed over the whole event. The last gradient is reused, so a step costs L
    gradients.

    Args:
        steps: Steps (trajectories) of one chain.
        step_size: ε, a time: one leapfrog step moves by ``½ε²`` times the gradient. Adaptation starts from it.
        leapfrog_steps: L ≥ 1.
        temperature: T of the stationary distribution ``exp(−E/T)``.
        jitter: For every trajectory each chain's ε, and so the length of the trajectory, is drawn uniformly within this
            share on either side. This prevents trajectories that keep returning to their starting point.
        mass: M: ``None`` for 1, a tensor of the event's shape for a diagonal, or a symmetric positive definite matrix
            ``(d, d)`` over the flattened event. The inverse covariance is best; see :func:`diagonal_mass` and
            :func:`dense_mass`.
        target_acceptance: Acceptance rate that adaptation aims for.
        adaptation: Change of log ε per step and unit of acceptance error; later it decays as ``n^(−0.6)``. In the first
            20 steps ε doubles while the acceptance is more than halfway from the target to 1.

    Raises:
        InputError: ``steps`` is below 0, ``step_size`` or ``temperature`` not above 0, ``leapfrog_steps`` below 1,
            ``jitter`` outside [0, 1), ``target_acceptance`` outside (0, 1), ``adaptation`` below 0, or ``mass`` not
            positive definite.
    """

    def __init__(
        self,
        steps: int = 20,
        step_size: float = 0.1,
        leapfrog_steps: int = 10,
        temperature: float = 1.0,
        jitter: float = 0.2,
        mass: Tensor | None = None,
        target_acceptance: float = 0.8,
        adaptation: float = 0.2,
    ) -> None:
        super().__init__(steps, step_size, temperature, target_acceptance, adaptation)
        check_settings(self, leapfrog_steps=leapfrog_steps, jitter=jitter)
        self.leapfrog_steps, self.gradients_per_step, self.jitter = leapfrog_steps, leapfrog_steps, jitter
        self.mass = None if mass is None else Mass(mass)

    def adapt(self, state: ChainState, info: StepInfo) -> ChainState:
        """Adapt as :class:`AdaptiveKernel` does; double ε in the first updates while nearly everything is accepted.

        If the step size is far too small, the acceptance is near 1, so it differs from the target by at most
        ``1 − target_acceptance``. Adapting by that difference alone takes hundreds of steps.
        """
        adapted = super().adapt(state, info)
        assert info.probability is not None
        acceptance = info.probability if state.step_size.ndim else info.probability.mean()
        searching = (state.updates < SEARCH) & (acceptance > (1 + self.target_acceptance) / 2) & (self.adaptation > 0)
        larger = torch.maximum(adapted.step_size, 2 * state.step_size)
        return adapted._replace(step_size=torch.where(searching, larger, adapted.step_size))

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> ChainState:
        """The state of chains at ``x`` ``(B, *event)``; costs one gradient.

        Raises:
            InputError: The mass fits neither the event's shape nor its flattened length squared.
        """
        if self.mass is not None:
            self.mass.check(x)
        return super().init(energy, x, step_size)

    def sample_randomness(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
        """ξ of the momenta ``(B, *event)``, uniform numbers ``(B,)`` for acceptance, and with jitter those of ε."""
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        shares = (len(x),) if self.jitter == 0 else (2, len(x))
        uniform = torch.rand(shares, generator=generator, dtype=x.dtype, device=x.device)
        return (noise, uniform) if self.jitter == 0 else (noise, *uniform)

    def move(self, energy: Energy, state: ChainState, numbers: tuple[Tensor, ...]) -> Step:
        """Move every chain once, with L gradients; a trajectory that ends at a non-finite energy is rejected."""
        x, T = state.x, self.temperature
        noise, u, *jitter = numbers
        momentum = T**0.5 * (noise if self.mass is None else self.mass.root(noise))
        velocity = None if self.mass is None else self.mass.solve
        eps = expand_rows(state.step_size * (1 + self.jitter * (2 * jitter[0] - 1)) if jitter else state.step_size, x)
        end = leapfrog(energy, x, momentum, eps, self.leapfrog_steps, velocity, state.gradient)
        log_ratio = (state.energy - end.energy + _kinetic(momentum, velocity) - _kinetic(end.momentum, velocity)) / T
        return metropolis_accept(state, u, log_ratio, x=end.x, energy=end.energy, gradient=end.gradient)


def _kinetic(momentum: Tensor, velocity: Velocity | None) -> Tensor:
    """``½ vᵀM⁻¹v`` ``(B,)``, over the whole event."""
    speed = momentum if velocity is None else velocity(momentum)
    return 0.5 * (momentum * speed).flatten(1).sum(1)
