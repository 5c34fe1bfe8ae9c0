"""The Metropolis–Hastings algorithm (thesis 2.2), with a Gaussian random walk or any proposal; no gradients."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from adance.configurable import Configurable
from adance.energies import Density, Energy
from adance.energies.energy import energies
from adance.errors import InputError
from adance.samplers.accept import metropolis_accept
from adance.samplers.adaptation import AdaptiveKernel
from adance.samplers.kernel import ChainState, Kernel, Step, check_settings
from adance.samplers.rows import expand_rows


class RandomWalkMetropolis(AdaptiveKernel):
    """Proposals ``x' = x + sξ``, accepted with probability ``min(1, exp(−(E(x') − E(x))/T))``.

    Args:
        steps: Steps of one chain.
        step_size: s, the standard deviation of a proposal in every coordinate. Adaptation starts from it.
        temperature: T of the stationary distribution ``exp(−E/T)``.
        target_acceptance: Acceptance rate that adaptation aims for; 0.234 is optimal for smooth distributions in many
            dimensions.
        adaptation: Change of log s per step and unit of acceptance error; later it decays as ``n^(−0.6)``.

    Raises:
        InputError: ``steps`` or ``adaptation`` is below 0, ``step_size`` or ``temperature`` not above 0, or
            ``target_acceptance`` outside (0, 1).
    """

    gradients_at_init = gradients_per_step = 0

    def __init__(
        self,
        steps: int = 500,
        step_size: float = 0.5,
        temperature: float = 1.0,
        target_acceptance: float = 0.234,
        adaptation: float = 0.2,
    ) -> None:
        super().__init__(steps, step_size, temperature, target_acceptance, adaptation)

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> ChainState:
        """The state of chains at ``x`` ``(B, *event)``; costs one energy."""
        return self._start(x, step_size, energies(energy, x))

    def move(self, energy: Energy, state: ChainState, numbers: tuple[Tensor, ...]) -> Step:
        """Move every chain once, with one energy; a proposal with a non-finite energy is rejected."""
        x, values = state.x, state.energy
        noise, u = numbers
        proposal = x + expand_rows(state.step_size, x) * noise
        new_values = energies(energy, proposal)
        log_ratio = (values - new_values) / self.temperature
        return metropolis_accept(state, u, log_ratio, x=proposal, energy=new_values)


@runtime_checkable
class Proposal(Protocol):
    """A proposal distribution q; if not symmetric, it also has ``log_prob(to, given) -> (B,)``, its log-density."""

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """One proposal for each row of ``x`` ``(B, *event)``."""
        ...


class MetropolisHastings(Kernel):
    """Proposals ``x' ~ q(·|x)`` of any kind, accepted with probability ``min(1, p(x')q(x|x') / p(x)q(x'|x))``.

    Args:
        proposal: q, any object with ``sample(x, generator)`` and ``log_prob(to, given)``; without ``log_prob`` it is
            assumed to be symmetric.
        steps: Steps of one chain.
        temperature: T of the stationary distribution ``exp(−E/T)``.

    Raises:
        InputError: ``steps`` is below 0, ``temperature`` not above 0, or ``proposal`` has no ``sample``.
    """

    exact = True
    gradients_per_step = 0

    def __init__(self, proposal: Proposal, steps: int = 500, temperature: float = 1.0) -> None:
        if not callable(getattr(proposal, "sample", None)):
            raise InputError(f"proposal={type(proposal).__name__} has no method sample(x, generator)")
        check_settings(self, steps=steps, temperature=temperature)
        self.proposal, self.steps, self.temperature = proposal, steps, temperature

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> ChainState:
        """The state of chains at ``x`` ``(B, *event)``; costs one energy."""
        return ChainState(x, energies(energy, x))

    def step(self, energy: Energy, state: ChainState, generator: torch.Generator | None = None) -> Step:
        """Move every chain once, with one energy."""
        x, values = state.x, state.energy
        proposal = self.proposal.sample(x, generator)
        new_values = energies(energy, proposal)
        log_ratio = (values - new_values) / self.temperature
        log_prob = getattr(self.proposal, "log_prob", None)
        if log_prob is not None:
            log_ratio = log_ratio + log_prob(x, proposal) - log_prob(proposal, x)
        u = torch.rand(log_ratio.shape, generator=generator, dtype=log_ratio.dtype, device=x.device)
        return metropolis_accept(state, u, log_ratio, x=proposal, energy=new_values)


class Flip(Configurable, Proposal):
    """A symmetric proposal for units with two values: flips one unit, drawn uniformly for each chain.

    Args:
        values: The two values that a unit can have.
    """

    def __init__(self, values: tuple[float, float] = (0.0, 1.0)) -> None:
        self.values = values

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """``x`` ``(B, *event)`` with one unit of each row flipped."""
        flat = x.flatten(1)
        units = torch.randint(flat.shape[1], (len(x), 1), generator=generator, device=x.device)
        return flat.scatter(1, units, sum(self.values) - flat.gather(1, units)).view_as(x)


class Independent(Configurable, Proposal):
    """Proposals from a fixed density, regardless of the position: the independence sampler.

    Args:
        density: An object with ``sample(n, generator)`` and ``log_prob(x)``, such as the densities of
            :mod:`adance.energies`.
    """

    def __init__(self, density: Density) -> None:
        self.density = density

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """One sample for each row of ``x`` ``(B, *event)``."""
        return self.density.sample(len(x), generator)

    def log_prob(self, to: Tensor, given: Tensor) -> Tensor:
        """Log-densities ``(B,)`` of ``to`` ``(B, *event)``; ``given`` is ignored."""
        return self.density.log_prob(to)
