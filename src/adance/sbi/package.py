"""An adapter to the package sbi (an extra): its samplers, diagnostics and plots on our energy."""

import importlib
from typing import Any

from torch import Tensor

from adance.errors import InputError
from adance.sbi.posterior import PosteriorEnergy


class Potential:
    """The log-density of the posterior up to a constant, as sbi calls it.

    Args:
        posterior: The fitted posterior.
    """

    def __init__(self, posterior: PosteriorEnergy) -> None:
        self.posterior = posterior

    def __call__(self, theta: Tensor, x_o: Tensor) -> Tensor:
        """Log-densities ``(N,)`` of θ ``(N, d)`` at trials of one observation ``(T, p)``."""
        return -self.posterior.potential(_as_rows(theta), _as_rows(x_o)[None])


def to_sbi(posterior: PosteriorEnergy, x_o: Tensor, **options: Any) -> Any:
    """The posterior at one observation as an ``MCMCPosterior`` of sbi.

    Its potential can be differentiated, so ``hmc_pyro`` and ``nuts_pyro`` work too.

    Args:
        posterior: The fitted posterior.
        x_o: One observation ``(p,)``, or T independent trials of one ``(T, p)``.
        options: Arguments of ``MCMCPosterior``, such as ``method`` or ``num_chains``.

    Raises:
        InputError: The package sbi is not installed.
    """
    try:
        posteriors = importlib.import_module("sbi.inference.posteriors")
        utils = importlib.import_module("sbi.utils")
    except ImportError:
        raise InputError("to_sbi needs the package sbi: pip install 'adance[sbi]'") from None
    distributions = posterior.prior.distributions
    prior = distributions[0] if len(distributions) == 1 else utils.MultipleIndependent(distributions)
    made = posteriors.MCMCPosterior(
        Potential(posterior), proposal=prior, theta_transform=utils.mcmc_transform(prior), **options
    )
    return made.set_default_x(_as_rows(x_o))


def _as_rows(x: Tensor) -> Tensor:
    return x[None] if x.ndim == 1 else x
