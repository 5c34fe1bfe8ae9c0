"""The Metropolis-adjusted Langevin algorithm (thesis 2.1.3.3): exact at any step size."""

from torch import Tensor

from adance.energies.energy import Energy, energy_and_gradient
from adance.samplers.accept import metropolis_accept
from adance.samplers.adaptation import AdaptiveKernel
from adance.samplers.kernel import ChainState, Step
from adance.samplers.rows import expand_rows


class MALA(AdaptiveKernel):
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

    def __init__(
        self,
        steps: int = 100,
        step_size: float = 0.1,
        temperature: float = 1.0,
        target_acceptance: float = 0.574,
        adaptation: float = 0.2,
    ) -> None:
        super().__init__(steps, step_size, temperature, target_acceptance, adaptation)

    def move(self, energy: Energy, state: ChainState, numbers: tuple[Tensor, ...]) -> Step:
        """Move every chain once, with one gradient; a proposal with a non-finite energy is rejected."""
        x, values, gradient, T = state.x, state.energy, state.gradient, self.temperature
        h = expand_rows(state.step_size, x)
        noise, u = numbers
        proposal = x - h * gradient + (2 * h * T).sqrt() * noise
        new_values, new_gradient = energy_and_gradient(energy, proposal)
        # q(x'|x) is the density of the noise that was drawn, q(x|x') that of the noise that would lead back
        back = (x - proposal + h * new_gradient).flatten(1).square().sum(1) / (4 * state.step_size * T)
        forth = noise.flatten(1).square().sum(1) / 2
        log_ratio = (values - new_values) / T + forth - back
        return metropolis_accept(state, u, log_ratio, x=proposal, energy=new_values, gradient=new_gradient)
