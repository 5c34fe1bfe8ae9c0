"""Gibbs with gradients (Grathwohl et al. 2021): flips of single units, proposed by the gradient."""

import torch
from torch import Tensor

from adance.energies.binary import check_units, check_values, unit_values
from adance.energies.energy import Energy, energy_and_gradient
from adance.samplers.accept import metropolis_accept
from adance.samplers.kernel import ChainState, Kernel, Step, check_settings


class GibbsWithGradients(Kernel):
    """Flips of one two-valued unit i, proposed by ``q(i|x) ∝ exp(½ dᵢ(x))`` and accepted by the Metropolis rule.

    ``dᵢ(x) = −(x'ᵢ − xᵢ) ∂E/∂xᵢ / T`` estimates how much the flip raises the log-probability, with one gradient for all
    units. The sampler is exact for any energy that is differentiable between the two values.

    Args:
        steps: Steps of one chain; each flips at most one unit.
        temperature: T of the stationary distribution ``exp(−E/T)``.
        values: The two values of a unit, lower first: (0, 1) or (−1, 1). By default ``(energy.low, 1)``, or (0, 1) if
            the energy has no ``low``.

    Raises:
        InputError: ``steps`` is below 0, or ``temperature`` not above 0.
    """

    exact = True
    gradients_at_init = 1

    def __init__(self, steps: int = 200, temperature: float = 1.0, values: tuple[float, float] | None = None) -> None:
        check_settings(self, steps=steps, temperature=temperature)
        self.steps, self.temperature = steps, temperature
        self.values = None if values is None else check_values(values)

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> ChainState:
        """The state of chains at ``x`` ``(B, *event)``; costs one gradient.

        Raises:
            InputError: A unit has neither of the two values.
        """
        check_units(x, unit_values(energy, self.values), "GibbsWithGradients")
        return ChainState(x, *energy_and_gradient(energy, x))

    def step(self, energy: Energy, state: ChainState, generator: torch.Generator | None = None) -> Step:
        """Flip at most one unit of every chain, with one gradient."""
        x, values, gradient = state.x, state.energy, state.gradient
        both = sum(unit_values(energy, self.values))
        forth = self._log_proposal(both - 2 * x, gradient)
        # the largest of logits plus Gumbel noise, which is minus the log of an exponential, is a draw of the softmax
        clock = torch.empty_like(forth).exponential_(generator=generator)
        unit = (forth - clock.log()).argmax(1, keepdim=True)
        flat = x.flatten(1)
        proposal = flat.scatter(1, unit, both - flat.gather(1, unit)).view_as(x)
        new_values, new_gradient = energy_and_gradient(energy, proposal)
        back = self._log_proposal(both - 2 * proposal, new_gradient)
        log_ratio = (values - new_values) / self.temperature + (back - forth).gather(1, unit)[:, 0]
        u = torch.rand(log_ratio.shape, generator=generator, dtype=log_ratio.dtype, device=x.device)
        return metropolis_accept(state, u, log_ratio, x=proposal, energy=new_values, gradient=new_gradient)

    def _log_proposal(self, change: Tensor, gradient: Tensor) -> Tensor:
        """``log q(i|x)`` of every unit ``(B, d)``; ``change`` is by how much each would change."""
        return (-change * gradient / (2 * self.temperature)).flatten(1).log_softmax(1)
