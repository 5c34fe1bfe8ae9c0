"""The posterior of a simulator's parameters as one energy."""

import warnings
from collections.abc import Sequence
from typing import get_args

import torch
from torch import Tensor

from adance.contrasts.contrast import Contrast
from adance.contrasts.ranking import Ranking
from adance.errors import InputError
from adance.evaluation.log_z import Bracket
from adance.numbers import check_count
from adance.sbi.checks import as_numbers, as_table
from adance.sbi.normalization import bracket_of
from adance.sbi.prior import Prior, PriorLike
from adance.sbi.sampling import PosteriorChains, sample_posteriors
from adance.sbi.simulations import NoiseKind, PosteriorModel, Simulations, fit_posterior

NOISES = 9
"""Noise samples of each simulation."""


class PosteriorEnergy:
    """Posteriors ``p(θ|x) ∝ p(θ) exp(−f(θ, x))`` for all data x, learned from simulations.

    A network f is fitted so that each simulation's θ can be found among noise drawn from and around it, which makes
    ``−f`` the log-likelihood up to a function of x. No chains run in training; they sample the posterior at your data.

    Args:
        prior: The distribution of θ, from ``torch.distributions``, or a sequence of distributions of its parts; see
            :class:`~adance.sbi.prior.Prior`.
        noise: ``perturbed``: θ at all scales around the true one (:class:`~adance.sbi.noises.PriorPerturbation`).
            ``shuffled``: θ of other simulations (:class:`~adance.sbi.noises.ShuffledNoise`). ``snapshot``: θ from an
            earlier copy of the model (:class:`~adance.sbi.noises.PosteriorSnapshot`).
        contrast: The contrast; by default :class:`~adance.contrasts.Ranking` of each θ among nine others.
        hidden: Widths of the network's hidden layers.
        max_steps: Maximum number of optimizer steps of a fit; by default the number of simulations, but at least 200
            and at most 6,000.
        seed: Seed of all random numbers.

    Attributes:
        prior: The prior with its map to normal coordinates.
        model: The fitted energy, and how the fit went; ``None`` before :meth:`fit`.

    Raises:
        InputError: The prior is not supported, ``noise`` is unknown, or ``max_steps`` is below 1.
    """

    def __init__(
        self,
        prior: PriorLike,
        *,
        noise: NoiseKind = "perturbed",
        contrast: Contrast | None = None,
        hidden: Sequence[int] = (128, 128, 128),
        max_steps: int | None = None,
        seed: int = 0,
    ) -> None:
        if noise not in get_args(NoiseKind):
            raise InputError(f"noise must be perturbed, shuffled or snapshot, got {noise!r}")
        if max_steps is not None:
            check_count("max_steps", max_steps)
        if not isinstance(hidden, Sequence):
            raise InputError(f"hidden must be a sequence of widths, got {hidden!r}")
        for width in hidden:
            check_count("each width in hidden", width)
        self.prior = Prior(prior)
        self.noise, self.contrast, self.hidden = noise, contrast or Ranking(NOISES), tuple(hidden)
        self.max_steps, self.seed = max_steps, seed
        self.model: PosteriorModel | None = None
        self._simulations: Simulations | None = None
        self._brackets: dict[tuple[bytes, torch.Size], Bracket] = {}

    def fit(self, theta: Tensor, x: Tensor) -> "PosteriorEnergy":
        """Fit to simulations.

        Args:
            theta: Parameters ``(N, d)``, samples of the prior.
            x: The data that were simulated from them ``(N, p)``.

        Raises:
            InputError: The shapes do not fit, a value is not finite, or a θ is outside the prior's support.
        """
        return self._fit(Simulations.of(self.prior, theta, x, from_prior=True), None)

    def append_simulations(self, theta: Tensor, x: Tensor, *, from_prior: bool = False) -> "PosteriorEnergy":
        """Add simulations, and continue the fit on all of them.

        Parameters of later rounds are usually samples of an earlier posterior at your data. From then on every fit uses
        ``shuffled`` noise, because the θ of the simulations no longer follow the prior. The posterior is still with
        respect to the prior.

        Args:
            theta: Parameters ``(N, d)`` in the prior's support.
            x: The data that were simulated from them ``(N, p)``.
            from_prior: Whether they are samples of the prior.

        Raises:
            InputError: The shapes do not fit, a value is not finite, or a θ is outside the prior's support.
        """
        more = Simulations.of(self.prior, theta, x, from_prior)
        return self._fit(more if self._simulations is None else self._simulations.joined(more), self.model)

    def sample(self, n: int, x_o: Tensor, *, seed: int = 0, compile: bool = False) -> Tensor:
        """Samples of the posterior.

        Warns if chains have not mixed: if independent populations of them disagree.

        Args:
            n: Number of samples for each observation.
            x_o: One observation ``(p,)``; S of them ``(S, p)``; or S of T independent trials each, ``(S, T, p)``,
                whose energies are summed.
            seed: Seed.
            compile: Compile the chains, which takes about ten seconds and pays for many observations.

        Returns:
            θ ``(n, d)``, for several observations ``(S, n, d)``.
        """
        check_count("n", n)
        chains = self.chains(n, x_o, seed=seed, compile=compile)
        order = torch.rand(chains.u.shape[:2], generator=_generator(seed)).argsort(1)[:, :n]
        u = chains.u.gather(1, order[:, :, None].expand(-1, -1, self.prior.size))
        theta = self.prior.to_theta(u.flatten(0, 1)).view(u.shape)
        return theta[0] if torch.as_tensor(x_o).ndim == 1 else theta

    def chains(self, n: int, x_o: Tensor, *, seed: int = 0, compile: bool = False) -> PosteriorChains:
        """The chains behind :meth:`sample`: at least ``n`` for each observation, with their diagnostics."""
        fitted = self._fitted
        chains = sample_posteriors(
            fitted.energy,
            self._observations(x_o),
            n,
            parameters=self.prior.size,
            generator=_generator(seed),
            compile=compile,
        )
        bad = (~chains.mixed()).nonzero().flatten().tolist()
        if bad:
            warnings.warn(
                f"chains have not mixed for {len(bad)} of {len(chains.u)} observations (the first is {bad[0]}): "
                "independent populations disagree, so the weights of modes are uncertain; use a larger n",
                stacklevel=3,
            )
        return chains

    def potential(self, theta: Tensor, x_o: Tensor) -> Tensor:
        """``f(θ, x) − log p(θ)`` ``(N,)``: minus the log-density of the posterior, up to a constant of ``x_o``.

        It is ∞ outside the prior's support, and can be differentiated in θ.

        Args:
            theta: Parameters ``(N, d)``.
            x_o: One observation ``(p,)``, or T trials of one ``(1, T, p)``.

        Raises:
            InputError: A shape is another one, or a value is not finite.
        """
        theta = as_table("theta", theta, self.prior.size)
        log_prior = self.prior.log_prob(theta)
        inside = log_prior > -torch.inf
        middle = self.prior.to_theta(theta.new_zeros(1, self.prior.size))
        u = self.prior.to_normal(torch.where(inside[:, None], theta, middle)).float()
        condition = self._one_observation(x_o).expand(len(u), -1, -1)
        return torch.where(inside, self._fitted.energy.tilt(u, condition) - log_prior, torch.inf)

    @torch.no_grad()
    def log_prob(self, theta: Tensor, x_o: Tensor) -> Tensor:
        """Log-densities ``(N,)`` of the posterior, normalized by annealed importance sampling.

        :meth:`log_z` says how certain the constant is; its middle is used here.

        Args:
            theta: Parameters ``(N, d)``.
            x_o: One observation ``(p,)``, or T trials of one ``(1, T, p)``.
        """
        bracket = self.log_z(x_o)
        return -self.potential(theta, x_o) - (bracket.forward.value + bracket.backward.value) / 2

    def log_z(self, x_o: Tensor) -> Bracket:
        """``log ∫ p(θ) exp(−f(θ, x)) dθ`` at one observation, between two bounds; warns if they do not meet."""
        condition = self._one_observation(x_o)
        key = condition.numpy().tobytes(), condition.shape
        if key not in self._brackets:
            self._brackets[key] = bracket_of(self._fitted.energy, condition, self.prior.size, _generator(self.seed))
        bracket = self._brackets[key]
        if not bracket.closed:
            warnings.warn(f"log Z of the posterior is {bracket.verdict}", stacklevel=2)
        return bracket

    def _fit(self, simulations: Simulations, start: PosteriorModel | None) -> "PosteriorEnergy":
        self.model = fit_posterior(
            simulations,
            self.prior.map.bounded,
            self.noise,
            self.contrast,
            self.hidden,
            self.max_steps,
            _generator(self.seed),
            start,
        )
        self._simulations = simulations
        self._brackets.clear()
        return self

    @property
    def _fitted(self) -> PosteriorModel:
        if self.model is None:
            raise InputError("the posterior is not fitted yet: call fit(theta, x) first")
        return self.model

    def _observations(self, x_o: Tensor) -> Tensor:
        """Features ``(S, T, p)`` of observations."""
        x = as_numbers("x_o", x_o)
        if x.ndim not in (1, 2, 3) or 0 in x.shape:
            raise InputError(f"x_o must have shape (p,), (S, p) or (S, T, p), got {tuple(x.shape)}")
        trials = x[None, None] if x.ndim == 1 else x[:, None] if x.ndim == 2 else x
        features = self._fitted.features(trials.flatten(0, 1)).view(*trials.shape[:2], -1)
        if self._simulations is not None:
            self._simulations.warn_if_far(trials.flatten(0, 1))
        return features

    def _one_observation(self, x_o: Tensor) -> Tensor:
        condition = self._observations(x_o)
        if len(condition) != 1:
            raise InputError(
                f"this needs one observation, of shape (p,) or (1, T, p); got {tuple(as_numbers('x_o', x_o).shape)}"
            )
        return condition


def _generator(seed: int) -> torch.Generator:
    check_count("seed", seed, 0)
    return torch.Generator().manual_seed(seed)
