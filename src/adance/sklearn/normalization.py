"""Bounds on log Z of a tilted energy whose network is bounded below."""

import math

import torch
from torch import Tensor

from adance.energies.tilted import Tilted
from adance.evaluation.log_z import STANDARD_ERRORS, Bracket
from adance.samplers.resampling import log_mean_exp

BOUND = 5.0
"""The density is at most exp(BOUND)/Z times its base."""

FAILURE = 1e-3
"""Probability that the bracket is wrong at one look at the weights; there are at most ``LOOKS``."""

DRAWS, LOOKS = 100_000, 10
"""Samples of the base that each look adds, and the largest number of looks."""

CHUNK = 10_000
NARROW = 0.05
"""Width of the bracket, in nats, at which no more samples are drawn."""


def bracket_tilt(energy: Tilted, log_z: float, generator: torch.Generator) -> Bracket:
    """Bounds on log Z of ``p_base(x) exp(−f(x))``, minus ``log_z``, by importance sampling from the base.

    Samples are drawn until the bracket is narrow, at most 1,000,000.

    Args:
        energy: A tilted energy built with ``bound=BOUND``.
        log_z: The number to subtract.
        generator: Source of randomness.
    """
    log_weights = torch.empty(0, dtype=torch.float64)
    for _ in range(LOOKS):
        log_weights = torch.cat([log_weights, sample_log_weights(energy, DRAWS, generator) - log_z])
        bracket = bracket_mean(log_weights, BOUND - log_z)
        if bracket.width < NARROW:
            break
    return bracket


def bracket_mean(log_weights: Tensor, largest: float) -> Bracket:
    """Bounds on the logarithm of the expectation of weights, from independent ones ``exp(log_weights)`` ``(n,)``.

    These are empirical Bernstein bounds (Maurer and Pontil 2009).

    Args:
        log_weights: Logarithms of the weights.
        largest: Upper bound on ``log_weights``.
    """
    n, mean = len(log_weights), log_mean_exp(log_weights)
    tails = math.log(4 / FAILURE)
    share = mean.error * math.sqrt(2 * tails) + 7 * math.exp(largest - mean.value) * tails / (3 * (n - 1))
    below = -math.log1p(-share) if share < 1 else math.inf
    lower, upper = (mean._replace(error=error / STANDARD_ERRORS) for error in (below, math.log1p(share)))
    return Bracket(lower, upper, chains=n, temperatures=1, complete=True, exact=True)


@torch.no_grad()
def sample_log_weights(energy: Tilted, n: int, generator: torch.Generator) -> Tensor:
    """Values ``−f(x)`` ``(n,)`` at samples of the base, float64."""
    sizes = [CHUNK] * (n // CHUNK) + [n % CHUNK] * (n % CHUNK > 0)
    return -torch.cat([energy.net(energy.fitted_base.sample(size, generator)) for size in sizes]).double()
