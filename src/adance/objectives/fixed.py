"""Contrastive objectives whose noise stays as it is."""

from collections.abc import Sequence
from typing import Literal

from torch.distributions import Distribution

from adance.contrasts.bregman import Bregman, Logistic
from adance.contrasts.conditional import Conditional
from adance.contrasts.named import Psi, named_bregman
from adance.contrasts.ranking import Ranking
from adance.energies.analytic import Density
from adance.noises.around import Around
from adance.noises.fixed import FixedNoise
from adance.noises.flow import Flow
from adance.noises.noise import Noise
from adance.objectives.contrastive import Contrastive

NoiseName = Literal["gaussian", "uniform", "mixture", "flow"]


def as_noise(noise: NoiseName | Noise | Density | Distribution) -> Noise:
    """The noise of that name, a noise itself, or any density as one.

    Raises:
        InputError: There is none of that name.
    """
    if isinstance(noise, Noise):
        return noise
    return Flow() if noise == "flow" else FixedNoise(noise)


class NCE(Contrastive):
    """Noise-contrastive estimation (thesis 2.13): data are told from a fixed noise by logistic regression.

    With ``r = −E(x) − log Z − log p_n(x)`` the loss is ``−E_data[log σ(r − log ν)] − ν E_noise[log σ(log ν − r)]``,
    r being ``(B,)`` on data and ``(B, ν)`` on noise.

    Estimates the normalised density ``exp(−E(x) − log Z)``, at T = 1. Choose it where a noise is known that covers the
    data closely, and a density is wanted: no chains are needed. Where noise and data hardly overlap it learns little.

    Args:
        noise: ``gaussian``, ``uniform``, ``mixture`` or ``flow``, fitted to the data; or a noise object.
        noises: ν, noise samples per datum.
        learn_log_z: Learn log Z as a parameter; else it is 0, and the energy must be able to normalise itself.
        normalize: Divide the loss by Ψ''(1) = ν/(1 + ν).
        energy_penalty: α of a term ``α·(mean E₊² + mean E₋²)``.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        noise: NoiseName | Noise = "gaussian",
        noises: int = 1,
        learn_log_z: bool = True,
        normalize: bool = True,
        energy_penalty: float = 0.0,
    ) -> None:
        super().__init__(Logistic(noises), as_noise(noise), None, 0.0, normalize, energy_penalty, learn_log_z)


class BRM(Contrastive):
    """Bregman ratio matching (thesis 4.8): the ratio p_data/p_n is fitted under any convex Ψ.

    The loss is ``E_noise[S0(r)] − E_data[S1(r)]`` with ``r = −E(x) − log Z − log p_n(x)``, ``(B,)`` on data and
    ``(B, ν)`` on noise; S1 = Ψ'(e^r), S0 = e^r Ψ'(e^r) − Ψ(e^r).

    Estimates the normalised density ``exp(−E(x) − log Z)``, at T = 1; ``e^r`` is the density ratio, positive
    everywhere. Choose it for a ratio of two samples (give the second as noise), or to compare Ψ: high powers weigh the
    places where data are many times likelier than noise. Logistic is the most stable, ``hellinger`` next.

    Args:
        psi: Ψ by name, or a Bregman object, which has its own number of noises.
        noise: ``gaussian``, ``uniform``, ``mixture`` or ``flow``, fitted to the data; or a noise object.
        noises: ν, noise samples per datum.
        learn_log_z: Learn log Z as a parameter; else it is 0, and the energy must be able to normalise itself.
        normalize: Divide the loss by Ψ''(1).
        energy_penalty: α of a term ``α·(mean E₊² + mean E₋²)``.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        psi: Psi | Bregman = "kl",
        noise: NoiseName | Noise = "gaussian",
        noises: int = 1,
        learn_log_z: bool = True,
        normalize: bool = True,
        energy_penalty: float = 0.0,
    ) -> None:
        contrast = named_bregman(psi, noises)
        super().__init__(contrast, as_noise(noise), None, 0.0, normalize, energy_penalty, learn_log_z)


class RankingNCE(Contrastive):
    """Ranking noise-contrastive estimation (thesis 2.16): which of L is the datum?

    With ``r = −E(x) − log p_n(x)``, ``(B,)`` on data and ``(B, L − 1)`` on noise, the loss is the cross-entropy of
    ``softmax(log ρᵢ + rᵢ)`` over each datum and its noises.

    Estimates the density up to its constant, at T = 1: log Z cancels. Choose it as NCE, where no log Z is wanted or
    the noise's own is unknown; many noises per datum bring it close to likelihood.

    Args:
        noise: ``gaussian``, ``uniform``, ``mixture`` or ``flow``, fitted to the data; or a noise object.
        noises: L − 1, noise samples per datum.
        probabilities: ρ, the probability of each of the L places; equal by default.
        normalize: Divide the loss by 1 − Σρ² = (L − 1)/L.
        energy_penalty: α of a term ``α·(mean E₊² + mean E₋²)``.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        noise: NoiseName | Noise = "gaussian",
        noises: int = 10,
        probabilities: Sequence[float] | None = None,
        normalize: bool = True,
        energy_penalty: float = 0.0,
    ) -> None:
        super().__init__(Ranking(noises, probabilities), as_noise(noise), None, 0.0, normalize, energy_penalty)


class ConditionalNCE(Contrastive):
    """Conditional noise-contrastive estimation (thesis 3.1, 3.2): a datum is told from noise drawn around it.

    With ``y = x + σξ`` the loss is the mean of ``softplus(E(x) − E(y))`` over each datum ``(B,)`` and its noises
    ``(B, M)``: the symmetric p_n(y|x) and log Z cancel from the ratio of a pair.

    Estimates the density up to its constant, at T = 1. Choose it where no noise that covers the data is known: it
    needs none, and no chains. It compares only places about σ apart: modes farther apart get wrong relative weights,
    and where σ is too small or too large the gradient vanishes.

    Args:
        bandwidth: σ; by default sᵢ/√D in axis i, with the data's standard deviation sᵢ.
        noises: M, noise samples per datum.
        normalize: Divide the loss by ½.
        energy_penalty: α of a term ``α·(mean E₊² + mean E₋²)``.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        bandwidth: float | None = None,
        noises: int = 10,
        normalize: bool = True,
        energy_penalty: float = 0.0,
    ) -> None:
        super().__init__(Conditional(noises), Around(bandwidth), None, 0.0, normalize, energy_penalty)
