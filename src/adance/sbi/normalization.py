"""The normalizing constant of one posterior: annealed importance sampling from a fit to its samples, and back."""

import math

import torch
from torch import Tensor

from adance.evaluation.ais import Bridge, plan
from adance.evaluation.log_z import Bracket, bracket_log_z
from adance.noises.fixed import FittedNoise
from adance.samplers.hmc import HMC
from adance.sbi.energy import PosteriorTilt
from adance.sbi.sampling import sample_posteriors

CHAINS = 1000
"""Annealed chains in each direction."""

EFFECTIVE_SHARE = 0.99
"""Effective sample size that is kept from one temperature to the next."""


def bracket_of(energy: PosteriorTilt, condition: Tensor, parameters: int, generator: torch.Generator) -> Bracket:
    """``log ∫ N(u; 0, 1) exp(−f(u, x)) du`` between two bounds.

    Half of the posterior's samples are for the base of the path, Student's t, whose tails cover the posterior. From it
    the posterior is a few temperatures away; from the prior it can be hundreds, and no step size suits all of them. The
    other half begins the way back.

    Args:
        energy: The energy, frozen.
        condition: Features of the data of one observation ``(1, T, p)``.
        parameters: Number of parameters d.
        generator: Source of randomness.
    """
    u = sample_posteriors(energy, condition, 2 * CHAINS, parameters=parameters, generator=generator).u[0]
    u = u[torch.randperm(len(u), generator=generator)]
    mean, std = u[:CHAINS].mean(0), u[:CHAINS].std(0)
    v = (u - mean) / std
    prior_constant = 0.5 * parameters * math.log(2 * math.pi)

    def posterior(v: Tensor) -> Tensor:
        energies: Tensor = energy(mean + std * v, condition.expand(len(v), -1, -1))
        return energies + prior_constant - std.log().sum()

    bridge = Bridge(posterior, FittedNoise("student").fit(v[:CHAINS], generator))
    kernel = HMC(1, 0.3, 4, adaptation=0.5)
    schedule = plan(bridge, kernel, target=EFFECTIVE_SHARE, chains=CHAINS, generator=generator)
    ends = v[CHAINS : 2 * CHAINS]
    return bracket_log_z(bridge, ends, exact=False, schedule=schedule, generator=generator)
