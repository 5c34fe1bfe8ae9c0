"""Simulations as training rows, and the fit of the energy to them."""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from adance.contrasts.contrast import Contrast
from adance.energies.frozen import freeze
from adance.errors import InputError
from adance.noises.noise import Noise
from adance.objectives.contrastive import Contrastive
from adance.randomness import drawing_from
from adance.sbi.checks import as_pairs
from adance.sbi.energy import PosteriorTilt, RatioNet
from adance.sbi.features import DataFeatures
from adance.sbi.noises import PosteriorSnapshot, PriorPerturbation, ShuffledNoise
from adance.sbi.prior import Prior
from adance.training.in_memory import FitHistory, Rows, fit_in_memory, loss_on
from adance.training.settings import Settings

NoiseKind = Literal["perturbed", "shuffled", "snapshot"]

HELD_OUT = 20
"""One of this many simulations is held out."""

MEASURED_ROWS = 4000
"""Held-out rows are repeated, each time with other noise, until there are about this many."""

FEWEST, BATCH, STEPS, LR = 20, 128, 6000, 2e-3
MEASUREMENTS = 25
"""How often the held-out loss is measured; the best weights are kept."""


@dataclass(frozen=True, eq=False)
class Simulations:
    """Pairs of parameters and data.

    Attributes:
        u: Normal coordinates of the parameters ``(N, d)``, float32.
        x: Data ``(N, p)``, float64.
        from_prior: Whether all parameters are samples of the prior.
    """

    u: Tensor
    x: Tensor
    from_prior: bool

    @classmethod
    def of(cls, prior: Prior, theta: Tensor, x: Tensor, from_prior: bool) -> "Simulations":
        """Check pairs of θ ``(N, d)`` and x ``(N, p)``.

        Raises:
            InputError: Shapes do not fit, a value is not finite, or a θ is outside the prior's support.
        """
        theta, x = as_pairs(theta, x, prior.size)
        return cls(prior.to_normal(theta).float(), x.double(), from_prior)

    def warn_if_far(self, x: Tensor) -> None:
        """Warn if data ``(M, p)`` are outside the range of the simulations by more than a tenth of its width."""
        low, high = self.x.aminmax(dim=0)
        margin = 0.1 * (high - low)
        far = ((x < low - margin) | (x > high + margin)).nonzero()
        if len(far) > 0:
            row, column = far[0].tolist()
            least, value, most = (float(v[column]) for v in (low, x[row], high))
            warnings.warn(
                f"x_o is far from the simulations, so its posterior is extrapolated: column {column} is {value:.4g}, "
                f"and simulated values are {least:.4g} to {most:.4g}",
                stacklevel=4,
            )

    def joined(self, more: "Simulations") -> "Simulations":
        """These simulations, then ``more``.

        Raises:
            InputError: The data have another number of columns.
        """
        if more.x.shape[1] != self.x.shape[1]:
            raise InputError(f"x must have {self.x.shape[1]} columns, as before, got {more.x.shape[1]}")
        both = torch.cat([self.u, more.u]), torch.cat([self.x, more.x])
        return Simulations(*both, self.from_prior and more.from_prior)


@dataclass(frozen=True, eq=False)
class PosteriorModel:
    """A fitted posterior energy.

    Attributes:
        energy: The energy in normal coordinates, frozen.
        features: From data to what the network sees.
        history: How the fit went.
    """

    energy: PosteriorTilt
    features: DataFeatures
    history: FitHistory


def fit_posterior(
    simulations: Simulations,
    bounded: Tensor,
    noise: NoiseKind,
    contrast: Contrast,
    hidden: Sequence[int],
    max_steps: int | None,
    generator: torch.Generator,
    start: PosteriorModel | None = None,
) -> PosteriorModel:
    """Fit the energy ``½‖u‖² + f(θ, x)`` by a contrast of each pair with noise in θ.

    Args:
        simulations: The pairs.
        bounded: Which parameters have two finite bounds ``(d,)``.
        noise: The noise in θ, of which only ``shuffled`` is for parameters that are not from the prior.
        contrast: The contrast.
        hidden: Widths of the network's hidden layers.
        max_steps: Maximum number of optimizer steps; by default the number of simulations, but at least 200 and at
            most 6,000.
        generator: Source of randomness.
        start: A model to continue from, with its features.

    Raises:
        InputError: There are too few simulations.
    """
    n = len(simulations.u)
    if n < FEWEST:
        raise InputError(f"a fit needs at least {FEWEST} simulations, got {n}")
    features = DataFeatures.fit(simulations.x) if start is None else start.features
    energy = _new_energy(simulations, bounded, hidden, generator) if start is None else _trainable(start)
    every = Rows(simulations.u, features(simulations.x))
    order = torch.randperm(n, generator=generator)
    held = max(1, n // HELD_OUT)
    train, held_out = every.at(order[held:]), every.at(order[:held].repeat(max(1, MEASURED_ROWS // held)))
    steps = max_steps if max_steps is not None else min(STEPS, max(200, n))
    settings = Settings(
        steps=steps,
        batch_size=min(n - held, BATCH),
        lr=LR,
        betas=(0.9, 0.99),
        schedule="cosine",
        evaluate_every=max(1, steps // MEASUREMENTS),
        patience=0,  # the loss falls again when the learning rate does, in the second half
    )
    objective = Contrastive(contrast, make_noise(noise, simulations, energy))
    # a snapshot changes, so its loss cannot be compared from step to step
    fixed = Contrastive(contrast, PriorPerturbation()) if noise == "snapshot" and simulations.from_prior else objective
    loss = loss_on(energy, fixed, held_out, seed=generator.initial_seed())
    history = fit_in_memory(energy, objective, train, loss, settings, generator)
    frozen = freeze(energy)
    assert isinstance(frozen, PosteriorTilt)
    return PosteriorModel(frozen, features, history)


def make_noise(kind: NoiseKind, simulations: Simulations, energy: PosteriorTilt) -> Noise:
    """The noise of that kind; ``shuffled`` if parameters are not from the prior, which the other kinds assume."""
    if kind == "shuffled" or not simulations.from_prior:
        return ShuffledNoise(simulations.u)
    return PosteriorSnapshot(energy) if kind == "snapshot" else PriorPerturbation()


def _new_energy(
    simulations: Simulations, bounded: Tensor, hidden: Sequence[int], generator: torch.Generator
) -> PosteriorTilt:
    with drawing_from(generator):
        return PosteriorTilt(RatioNet(simulations.u.shape[1], simulations.x.shape[1], hidden), bounded)


def _trainable(start: PosteriorModel) -> PosteriorTilt:
    return copy.deepcopy(start.energy).requires_grad_()
