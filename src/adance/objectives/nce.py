"""Contrastive objectives whose noise does not follow the model."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from adance.contrasts.bregman import Bregman, Logistic
from adance.contrasts.by_name import Psi, named_bregman
from adance.contrasts.conditional import Conditional
from adance.contrasts.contrast import Contrast
from adance.contrasts.ranking import Ranking
from adance.noises.by_name import NoiseLike, as_noise
from adance.noises.noise import NoiseRecipe
from adance.noises.perturbation import Bandwidth, Perturbation
from adance.numbers import check_real
from adance.objectives.contrastive import Contrastive
from adance.objectives.log_ratio import Constant, LogRatio
from adance.objectives.objective import Recipe, Setting, Site
from adance.objectives.tilt import noise_for

T = TypeVar("T", bound="TwoParts")


class TwoParts(Recipe):
    """A recipe of a contrast and a noise; both are constructed with it, so that their arguments are checked at once."""

    normalize: bool = True
    energy_penalty: float = 0.0
    learn_log_z: bool = False

    @abstractmethod
    def parts(self) -> tuple[Contrast, NoiseRecipe]:
        """The contrast and the noise."""

    @property
    def noise_recipe(self) -> NoiseRecipe | None:
        """The noise."""
        return self.parts()[1]

    def __post_init__(self) -> None:
        """Construct the parts."""
        self.parts()
        check_real("energy_penalty", self.energy_penalty, 0)

    def resolve(self: T, setting: Setting) -> T:
        """With the contrast and the noise as objects that leave no number open, where they are given by name."""
        _, noise = self.parts()
        chosen: dict[str, Any] = {}
        if hasattr(self, "noise"):
            chosen["noise"] = noise.resolve(setting.event_shape)
        return replace(self, **chosen)  # type: ignore[type-var]

    def build_for(self, site: Site) -> Contrastive:
        """The objective, its noise fitted to the data."""
        contrast, recipe = self.parts()
        noise = noise_for(site.energy, recipe, site.data, site.generator)
        constant: Constant = "learned" if self.learn_log_z else "none"
        ratio = LogRatio(noise.temperature if contrast.bounded_weights else 1.0, constant)
        return Contrastive(contrast, noise, ratio, normalize=self.normalize, energy_penalty=self.energy_penalty)


@dataclass(frozen=True)
class ContrastiveRecipe(TwoParts):
    """Any contrast with any noise that does not follow the model.

    Args:
        contrast: The contrast: turns log-ratios into a loss.
        noise: ``gaussian``, ``uniform``, ``mixture``, ``student``, ``kde``, ``cover`` or ``flow``, fitted to the data;
            or a noise object.
        learn_log_z: Learn log Z as a parameter; otherwise it is 0.
        normalize: Divide the loss by the contrast's curvature.
        energy_penalty: Weight α of the penalty ``α·(mean E₊² + mean E₋²)``.

    Raises:
        InputError: ``energy_penalty`` is below 0, or ``noise`` unknown.
    """

    contrast: Contrast
    noise: NoiseLike = "gaussian"
    learn_log_z: bool = False
    normalize: bool = True
    energy_penalty: float = 0.0

    def parts(self) -> tuple[Contrast, NoiseRecipe]:
        """The contrast and the noise."""
        return self.contrast, as_noise(self.noise)


@dataclass(frozen=True)
class NCE(TwoParts):
    """Noise-contrastive estimation (thesis 2.13): logistic regression distinguishes data from a fixed noise.

    With ``r = −E(x) − log Z − log p_n(x)`` the loss is ``−E_data[log σ(r − log ν)] − ν E_noise[log σ(log ν − r)]``,
    r being ``(B,)`` on data and ``(B, ν)`` on noise.

    Estimates the normalized density ``exp(−E(x) − log Z)``, at T = 1. Choose it for a normalized density, if you know a
    noise that covers the data closely: it needs no chains. If noise and data hardly overlap it learns little.

    Args:
        noise: ``gaussian``, ``uniform``, ``mixture``, ``student``, ``kde``, ``cover`` or ``flow``, fitted to the data;
            or a noise object.
        noises: ν, noise samples per datum.
        learn_log_z: Learn log Z as a parameter; otherwise it is 0, and the energy must be able to normalize itself.
        normalize: Divide the loss by Ψ''(1) = ν/(1 + ν).
        energy_penalty: Weight α of the penalty ``α·(mean E₊² + mean E₋²)``.

    Raises:
        InputError: ``noises`` is below 1, ``energy_penalty`` below 0, or ``noise`` unknown.
    """

    noise: NoiseLike = "gaussian"
    noises: int = 1
    learn_log_z: bool = True
    normalize: bool = True
    energy_penalty: float = 0.0

    def parts(self) -> tuple[Contrast, NoiseRecipe]:
        """The logistic contrast and the noise."""
        return Logistic(self.noises), as_noise(self.noise)


@dataclass(frozen=True)
class BRM(TwoParts):
    """Bregman ratio matching (thesis 4.8): the ratio p_data/p_n is fitted under any convex Ψ.

    The loss is ``E_noise[S0(r)] − E_data[S1(r)]`` with ``r = −E(x) − log Z − log p_n(x)``, ``(B,)`` on data and
    ``(B, ν)`` on noise; S1 = Ψ'(e^r), S0 = e^r Ψ'(e^r) − Ψ(e^r).

    Estimates the normalized density ``exp(−E(x) − log Z)``, at T = 1; ``e^r`` is the density ratio, positive
    everywhere. Choose it for the density ratio of two samples (pass the second as noise), or to compare Ψ: high powers
    give most weight to places where data are many times likelier than noise. Logistic is the most stable, ``hellinger``
    next.

    Args:
        psi: Ψ by name, or a Bregman object, with its own number of noise samples.
        noise: ``gaussian``, ``uniform``, ``mixture``, ``student``, ``kde``, ``cover`` or ``flow``, fitted to the data;
            or a noise object.
        noises: ν, noise samples per datum.
        learn_log_z: Learn log Z as a parameter; otherwise it is 0, and the energy must be able to normalize itself.
        normalize: Divide the loss by Ψ''(1).
        energy_penalty: Weight α of the penalty ``α·(mean E₊² + mean E₋²)``.

    Raises:
        InputError: ``noises`` is below 1, ``energy_penalty`` below 0, or ``psi`` or ``noise`` unknown.
    """

    psi: Psi | Bregman = "kl"
    noise: NoiseLike = "gaussian"
    noises: int = 1
    learn_log_z: bool = True
    normalize: bool = True
    energy_penalty: float = 0.0

    def resolve(self, setting: Setting) -> "BRM":
        """With Ψ and the noise as objects that leave no number open."""
        return replace(super().resolve(setting), psi=named_bregman(self.psi, self.noises))

    def parts(self) -> tuple[Contrast, NoiseRecipe]:
        """Ψ and the noise."""
        return named_bregman(self.psi, self.noises), as_noise(self.noise)


@dataclass(frozen=True)
class RankingNCE(TwoParts):
    """Ranking noise-contrastive estimation (thesis 2.16): which one of L is the datum?

    With ``r = −E(x) − log p_n(x)``, ``(B,)`` on data and ``(B, L − 1)`` on noise, the loss is the cross-entropy of
    ``softmax(log ρᵢ + rᵢ)`` over each datum and its noise samples.

    Estimates the density up to its constant, at T = 1: log Z cancels. Choose it where NCE fits, if you need no log Z or
    the noise is not normalized. With many noise samples per datum it is close to maximum likelihood.

    Args:
        noise: ``gaussian``, ``uniform``, ``mixture``, ``student``, ``kde``, ``cover`` or ``flow``, fitted to the data;
            or a noise object.
        noises: L − 1, noise samples per datum.
        probabilities: ρ, the prior probability that the datum is in each of the L places; ``equal`` by default.
        normalize: Divide the loss by 1 − Σρ² = (L − 1)/L.
        energy_penalty: Weight α of the penalty ``α·(mean E₊² + mean E₋²)``.

    Raises:
        InputError: ``noises`` is below 1, ``energy_penalty`` below 0, ``noise`` unknown, or ``probabilities`` are not L
            positive numbers that sum to 1.
    """

    noise: NoiseLike = "gaussian"
    noises: int = 10
    probabilities: Sequence[float] | Literal["equal"] = "equal"
    normalize: bool = True
    energy_penalty: float = 0.0

    def parts(self) -> tuple[Contrast, NoiseRecipe]:
        """The ranking contrast and the noise."""
        places = None if isinstance(self.probabilities, str) else self.probabilities
        return Ranking(self.noises, places), as_noise(self.noise)


@dataclass(frozen=True)
class ConditionalNCE(TwoParts):
    """Conditional noise-contrastive estimation (thesis 3.1, 3.2): distinguishes a datum from noise drawn around it.

    With ``y = x + σξ`` the loss is the mean of ``softplus(E(x) − E(y))`` over each datum ``(B,)`` and its noise samples
    ``(B, M)``: the symmetric p_n(y|x) and log Z cancel from the ratio of a pair.

    Estimates the density up to its constant, at T = 1. Choose it if you know no noise that covers the data: it needs
    neither such a noise nor chains. It compares only places about σ apart: modes farther apart get wrong relative
    weights, and if σ is too small or too large the gradient vanishes.

    Args:
        bandwidth: σ, the standard deviation of the noise; ``scaled`` sets it to sᵢ/√D in axis i, where sᵢ is the data's
            standard deviation.
        noises: M, noise samples per datum.
        normalize: Divide the loss by ½.
        energy_penalty: Weight α of the penalty ``α·(mean E₊² + mean E₋²)``.

    Raises:
        InputError: ``noises`` is below 1, ``energy_penalty`` below 0, or ``bandwidth`` not above 0.
    """

    bandwidth: Bandwidth = "scaled"
    noises: int = 10
    normalize: bool = True
    energy_penalty: float = 0.0

    def parts(self) -> tuple[Contrast, NoiseRecipe]:
        """The conditional contrast and the perturbation."""
        return Conditional(self.noises), Perturbation(self.bandwidth)
