"""The constant of one posterior, by annealed importance sampling from the prior and back."""

import torch
from torch import Tensor

from adance.energies.analytic import Gaussian
from adance.evaluation.ais import Bridge, plan
from adance.evaluation.log_z import Bracket, bracket_log_z
from adance.samplers.hmc import HMC
from adance.sbi.energy import PosteriorTilt
from adance.sbi.sampling import sample_posteriors

CHAINS = 400
"""Annealed chains in each direction."""

EFFECTIVE_SHARE = 0.99
"""Effective sample size that is kept from one temperature to the next."""


def bracket_of(energy: PosteriorTilt, condition: Tensor, parameters: int, generator: torch.Generator) -> Bracket:
    """``log ∫ N(u; 0, 1) exp(−f(u, x)) du`` between two bounds.

    Args:
        energy: The energy, frozen.
        condition: Features of the data of one observation ``(1, T, p)``.
        parameters: Number of parameters d.
        generator: Source of randomness.
    """
    base = Gaussian(torch.zeros(parameters), torch.ones(parameters))

    def posterior(u: Tensor) -> Tensor:
        return energy.tilt(u, condition.expand(len(u), -1, -1)) - base.log_prob(u)

    bridge = Bridge(posterior, base)
    ends = sample_posteriors(energy, condition, CHAINS, parameters=parameters, generator=generator).u[0]
    kernel = HMC(1, 0.3, 4, adaptation=0.5)
    schedule = plan(bridge, kernel, target=EFFECTIVE_SHARE, chains=CHAINS, generator=generator)
    return bracket_log_z(bridge, ends, exact=False, schedule=schedule, generator=generator)
