"""Contrastive objectives whose noise is trained against the model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adance.contrasts.bregman import Logistic
from adance.contrasts.contrast import Contrast
from adance.noises.adversarial import NeuralSampler
from adance.noises.fixed import FittedKind
from adance.noises.flow import Flow
from adance.noises.noise import NoiseRecipe
from adance.objectives.nce import TwoParts
from adance.objectives.objective import Setting


@dataclass(frozen=True)
class ACE(TwoParts):
    """Adversarial contrastive estimation (thesis 3.3): the noise is an implicit neural sampler mixed with a base noise.

    NCE's loss, ``−E_data[log σ(r − log ν)] − ν E_n[log σ(log ν − r)]`` with ``r = −E(x) − log Z − log p̂_n(x)``,
    ``(B,)`` on data and ``(B, ν)`` on noise, is minimized by the energy and maximized by the sampler.

    Estimates the normalized density ``exp(−E(x) − log Z)``, at T = 1, with the bias of ``log p̂_n``, which is too low
    by about ``½·Var(p̂_n)/p_n²`` for m draws: energies are too high by as much where the noise comes from the sampler.
    Choose it if neither chains nor a flow are possible; it does not scale to many dimensions.

    Args:
        base: The base noise: ``gaussian``, ``uniform`` or ``mixture``, fitted to the data.
        base_weight: λ, the share of the base noise.
        noises: ν, noise samples per datum.
        latent: Dimension of the sampler's latent z; by default that of the event, at most 64.
        hidden: Widths of the sampler's hidden layers.
        gradient: Estimator of the sampler's gradient: ``reparameterized`` or ``reinforce``.
        entropy: Weight of the sampler's entropy, against mode collapse.
        marginal_draws: m, number of latent samples that estimate p_φ.
        min_std: Lower bound of the sampler's σ, in standard deviations of the data.
        learn_log_z: Learn log Z as a parameter; otherwise it is 0, and the energy must be able to normalize itself.
        normalize: Divide the loss by Ψ''(1) = ν/(1 + ν).

    Raises:
        InputError: ``noises``, ``latent`` or ``marginal_draws`` is below 1, ``base_weight`` outside [0, 1), ``entropy``
            below 0, ``min_std`` not above 0, or ``base`` or ``gradient`` unknown.
    """

    base: FittedKind = "gaussian"
    base_weight: float = 0.5
    noises: int = 1
    latent: int | None = None
    hidden: Sequence[int] = (64, 64)
    gradient: Literal["reparameterized", "reinforce"] = "reparameterized"
    entropy: float = 0.1
    marginal_draws: int = 256
    min_std: float = 0.1
    learn_log_z: bool = True
    normalize: bool = True

    def resolve(self, setting: Setting) -> "ACE":
        """The recipe with the dimension of z filled in."""
        return replace(self, latent=self._noise().resolve(setting.event_shape).latent)

    def parts(self) -> tuple[Contrast, NoiseRecipe]:
        """The logistic contrast and the neural sampler."""
        return Logistic(self.noises), self._noise()

    def _noise(self) -> NeuralSampler:
        return NeuralSampler(
            self.base,
            self.base_weight,
            self.latent,
            self.hidden,
            self.gradient,
            self.entropy,
            self.marginal_draws,
            self.min_std,
        )


@dataclass(frozen=True)
class FCE(TwoParts):
    """Flow contrastive estimation (thesis 3.4): the noise is a normalizing flow that is trained against the model.

    NCE's loss, ``−E_data[log σ(r − log ν)] − ν E_φ[log σ(log ν − r)]`` with ``r = −E(x) − log Z − log p_φ(x)``,
    ``(B,)`` on data and ``(B, ν)`` on noise, is minimized by the energy and maximized by the flow, whose gradient
    passes through its samples and its densities.

    Estimates the normalized density ``exp(−E(x) − log Z)``, at T = 1. Choose it for a density in more dimensions than a
    fixed noise covers: the flow starts as a good noise and is kept close to the model. It costs a second model.

    Args:
        noises: ν, noise samples per datum.
        kind: Kind of coupling transform: ``spline`` or ``affine``.
        transforms: Number of coupling transforms of the flow.
        hidden: Widths of the hidden layers of each transform.
        fit_steps: Steps of maximum likelihood that fit the flow to the data before training.
        learn_log_z: Learn log Z as a parameter; otherwise it is 0, and the energy must be able to normalize itself.
        normalize: Divide the loss by Ψ''(1) = ν/(1 + ν).

    Raises:
        InputError: ``noises`` or ``transforms`` is below 1, ``fit_steps`` below 0, or ``kind`` unknown.
    """

    noises: int = 1
    kind: Literal["spline", "affine"] = "spline"
    transforms: int = 4
    hidden: Sequence[int] = (64, 64)
    fit_steps: int = 500
    learn_log_z: bool = True
    normalize: bool = True

    def parts(self) -> tuple[Contrast, NoiseRecipe]:
        """The logistic contrast and the flow."""
        return Logistic(self.noises), Flow(self.kind, self.transforms, self.hidden, self.fit_steps, adversarial=True)
