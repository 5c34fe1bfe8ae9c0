"""Whether posteriors are right on average: ranks of true parameters, and how often regions contain them."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from adance.errors import InputError
from adance.numbers import check_count
from adance.plot.posteriors import coverage_curve, rank_histogram
from adance.sbi.checks import as_pairs
from adance.sbi.posterior import PosteriorEnergy

LEVELS = 19
"""Levels at which coverage is compared: 5 % to 95 %."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Ranks of true parameters in the posteriors of data simulated from them.

    Under the true posteriors all ranks are uniform (Talts et al. 2018; Hermans et al. 2022). The test is necessary, not
    sufficient: the prior itself passes it.

    Attributes:
        ranks: For each simulation and parameter, the share of posterior samples below the true value ``(N, d)``.
        levels: For each simulation, the share of posterior samples that are more likely than the true θ ``(N,)``: the
            content of the smallest region of highest density that contains it.
        samples: Posterior samples of each simulation.
    """

    ranks: Tensor
    levels: Tensor
    samples: int

    def coverage(self, level: float) -> float:
        """The share of simulations whose θ is in the region of highest density of content ``level``, in [0, 1].

        Raises:
            InputError: ``level`` is outside [0, 1].
        """
        if not 0 <= level <= 1:
            raise InputError(f"level must be in [0, 1], got {level}")
        return float((self.levels < level).float().mean())

    @property
    def excess(self) -> float:
        """Mean of ``coverage(level) − level`` over the levels 5 % to 95 %; below 0 is over-confident."""
        levels = np.linspace(0.05, 0.95, LEVELS)
        return float(np.mean([self.coverage(level) - level for level in levels]))

    @property
    def excess_error(self) -> float:
        """Standard deviation of :attr:`excess` for exact posteriors, ``1/√(12 N)``."""
        return 1 / math.sqrt(12 * len(self.levels))

    @property
    def verdict(self) -> str:
        """What a reader must know, as a phrase."""
        errors = self.excess / self.excess_error
        kind = "over-confident" if errors < -2 else "under-confident" if errors > 2 else "calibrated"
        return (
            f"{kind}: coverage differs from its level by {self.excess:+.3f} on average, {errors:+.1f} standard errors"
        )

    def plot_ranks(self, parameter: int = 0, *, ax: Axes | None = None) -> Axes:
        """Draw the histogram of one parameter's ranks, with the range that uniform ranks have.

        Raises:
            InputError: There is no such parameter.
        """
        if parameter not in range(self.ranks.shape[1]):
            raise InputError(f"parameter must be in 0 to {self.ranks.shape[1] - 1}, got {parameter!r}")
        return rank_histogram(self.ranks[:, parameter].numpy(), ax=ax)

    def plot_coverage(self, *, ax: Axes | None = None) -> Axes:
        """Draw coverage over level, with the range that exact posteriors have."""
        return coverage_curve(self.levels.numpy(), ax=ax)


@torch.no_grad()
def calibrate(
    posterior: PosteriorEnergy, theta: Tensor, x: Tensor, *, samples: int = 256, at_once: int = 50, seed: int = 0
) -> Calibration:
    """Compare true parameters with the posteriors of their data.

    Args:
        posterior: The fitted posterior.
        theta: Parameters ``(N, d)`` from the prior, not used in the fit.
        x: Data simulated from them ``(N, p)``.
        samples: Posterior samples for each.
        at_once: Observations in one batch of chains.
        seed: Seed.

    Raises:
        InputError: A shape is another one, a value is not finite, or ``samples`` or ``at_once`` is below 1.
    """
    check_count("samples", samples)
    check_count("at_once", at_once)
    theta, x = as_pairs(theta, x, posterior.prior.size)
    ranks, levels = [], []
    for i, (true, data) in enumerate(zip(torch.split(theta, at_once), torch.split(x, at_once), strict=True)):
        found = posterior.sample(samples, data, seed=seed + i)
        ranks.append((found < true[:, None]).float().mean(1))
        for one, among, value in zip(true, found, data, strict=True):
            energies = posterior.potential(torch.cat([one[None], among]).float(), value)
            levels.append((energies[1:] < energies[0]).float().mean())
    return Calibration(torch.cat(ranks), torch.stack(levels), samples)
