"""Contrastive objectives whose noise is an earlier copy of the model."""

import torch
from torch import Tensor, nn

from adance.contrasts.bregman import Bregman, Logistic
from adance.contrasts.named import Psi, named_bregman
from adance.energies.energy import is_vector
from adance.noises.mixture import SnapshotMixture
from adance.noises.refreshes import Interval
from adance.noises.snapshot import Snapshot
from adance.objectives.contrastive import Contrastive
from adance.samplers.defaults import Changes
from adance.samplers.kernel import Kernel
from adance.samplers.starts import ChainStarts, StartKind

REACH_OF_IMAGES = 0.005
"""T of a centred ratio for images, in units of energy: how far the steps of one snapshot may go."""

DAMPING = 0.01
"""T of a centred ratio for vectors, in units of the chain's temperature, unless chains are reweighted."""


class _Adaptive(Contrastive):
    """A contrast with snapshots of the model; the arguments are those of the constructors."""

    def __init__(
        self,
        contrast: Bregman,
        sampler: Kernel | Changes | None,
        interval: Interval | None,
        ratio_temperature: float | None,
        margin: float | None,
        pool: int | None,
        starts: ChainStarts,
        normalize: bool,
        energy_penalty: float,
        snapshots: int | None,
        centre: bool | None,
    ) -> None:
        if centre is None:
            centre = margin is None and interval != 1
        if margin is None:
            margin = 0.01 if contrast.saturates and interval != 1 and not centre else 0.0
        if snapshots is None and not (centre and contrast.saturates):
            snapshots = 1
        noise = SnapshotMixture(sampler, starts, interval, pool, snapshots)
        super().__init__(contrast, noise, ratio_temperature, margin, normalize, energy_penalty, centre=centre)
        self.sampler = noise.sampler
        self._of_vectors: bool | None = None  # not known before data are

    @property
    def temperature(self) -> float:
        """T of the ratio."""
        assert isinstance(self.noise, Snapshot)
        chosen = self.centre and self.ratio_temperature is None and self._of_vectors is not None
        if self.ratio_temperature is None and self.noise.reweights:
            return self.noise.temperature
        if not chosen or self.noise.interval == 1 or not self.contrast.saturates:
            return super().temperature
        return DAMPING * self.noise.temperature if self._of_vectors else REACH_OF_IMAGES

    @property
    def chain_runs(self) -> float | None:
        """How many runs most of its chains from noise had behind them."""
        assert isinstance(self.noise, Snapshot)
        return self.noise.starts.runs

    def _prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        assert isinstance(self.noise, SnapshotMixture)
        self._of_vectors = is_vector(data.shape[1:])
        super()._prepare(energy, data, batch, generator)
        self.sampler = self.init_args["sampler"] = self.noise.sampler
        self.init_args["snapshots"] = self.noise.snapshots
        if not self.noise.until_served:
            self.init_args["interval"] = self.noise.interval


class AdaNCE(_Adaptive):
    """Self-adapting noise-contrastive estimation (thesis Algorithm 3.1): the noise is an earlier copy of the model.

    With ``r = (E_m(x) − E_θ(x) − δ)/T − c``, ``(B,)`` on data and ``(B, ν)`` on noise, the loss is
    ``−E_data[log σ(r − log ν)] − ν E_noise[log σ(log ν − r)]``, times T. c is fitted in each batch: it stands for the
    unknown log(Z_θ/Z_m). T says how far one snapshot's chains may move the model: solved to its end, that problem has
    ``E_θ = E_m − T log(p_data/p_m)`` up to a constant. docs/long-intervals.md says more.

    Estimates the density up to its constant, at the chain's temperature. With ``interval=1`` it is maximum likelihood.
    Choose it for images and wherever no noise covers the data: it needs no second model, and with reused pools fewer
    chains than likelihood.

    Args:
        sampler: Kernel of the noise's chains. By default ``Langevin(steps=30, step_size=1, noise_std=0.005)`` for
            images and ``MALA(steps=50)`` at T = 1 for vectors.
        interval: K, optimiser steps between snapshots, or ``auto``: take one when the last has served, see
            :class:`Snapshot`. By default 10 for images, ``auto`` where chains are reweighted, 50 for other vectors.
        ratio_temperature: T of the ratio. By default the chain's where chains are reweighted or without ``centre``;
            else 0.005 for images, about what one step of a chain descends, and 0.01 of the chain's for vectors. The
            thesis has 1.
        margin: δ in units of energy, which replaces c; by default 0, and 0.01 without ``centre`` at K > 1.
        pool: Chains drawn for each snapshot and reused; by default ``batch·⌈K/10⌉``. 0: a fresh batch every step, as
            Algorithm 3.1 has it.
        start: Where chains start. By default ``reweighted`` for vectors whose chains are exact: all that are kept are
            resampled at each refresh by how much likelier the new snapshot makes them, so that they follow the model
            though they never cross between its modes (Carbone et al. 2023). Else ``rejuvenated``: the ends of earlier
            chains, of which a share starts afresh. See :class:`ChainStarts`.
        rejuvenation: R, that share; by default 0.25 for images, 0.02 for vectors. Given alone, it means the latter.
        buffer: Chains kept between snapshots; by default 5,000, or a pool where that is more.
        noises: ν, noise samples per datum.
        normalize: Divide the loss by Ψ''(1) = ν/(1 + ν).
        energy_penalty: α of a term ``α·(mean E₊² + mean E₋²)``.
        snapshots: m: the noise is a mixture of the last m snapshots, their log Z taken as equal. By default 3 for
            images at a fixed K over 10 with a fitted c, where it keeps the model from going back and forth; else 1.
        centre: Fit c; by default where no ``margin`` is given and K is not 1, at which c is 0 anyway. Without it c
            is 0.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        sampler: Kernel | Changes | None = None,
        interval: Interval | None = None,
        ratio_temperature: float | None = None,
        margin: float | None = None,
        pool: int | None = None,
        start: StartKind | None = None,
        rejuvenation: float | None = None,
        buffer: int | None = None,
        noises: int = 1,
        normalize: bool = True,
        energy_penalty: float = 0.0,
        snapshots: int | None = None,
        centre: bool | None = None,
    ) -> None:
        starts = ChainStarts(start, rejuvenation, buffer)
        super().__init__(
            Logistic(noises),
            sampler,
            interval,
            ratio_temperature,
            margin,
            pool,
            starts,
            normalize,
            energy_penalty,
            snapshots,
            centre,
        )


class AdaBRM(_Adaptive):
    """Self-adapting Bregman ratio matching (thesis 4.10): any convex Ψ, with an earlier copy of the model as noise.

    The loss is ``E_noise[S0(r)] − E_data[S1(r)]`` with ``r = (E_m(x) − E_θ(x) − δ)/T − c``, ``(B,)`` on data and
    ``(B, ν)`` on noise, times T; c as for :class:`AdaNCE`.

    Estimates the density up to its constant, at the chain's temperature. With ``interval=1`` its gradient is Ψ''(1)
    times maximum likelihood's, whatever Ψ. Choose it to compare Ψ; with the logistic Ψ it is AdaNCE, which is the
    one that lets a snapshot of images be kept longest.

    Args:
        psi: Ψ by name, or a Bregman object, which has its own number of noises.
        sampler: As for :class:`AdaNCE`.
        interval: As for :class:`AdaNCE`; ``auto`` for the logistic Ψ or where chains are reweighted.
        ratio_temperature: T of the ratio; by default as for :class:`AdaNCE`, but 1 where Ψ grows and chains are not
            reweighted.
        margin: δ in units of energy; by default as for :class:`AdaNCE`.
        pool: As for :class:`AdaNCE`.
        start: As for :class:`AdaNCE`.
        rejuvenation: As for :class:`AdaNCE`.
        buffer: Chains kept between snapshots; by default 5,000, or a pool where that is more.
        noises: ν, noise samples per datum.
        normalize: Divide the loss by Ψ''(1).
        energy_penalty: α of a term ``α·(mean E₊² + mean E₋²)``.
        snapshots: As for :class:`AdaNCE`, by default 1 where Ψ grows.
        centre: As for :class:`AdaNCE`.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        psi: Psi | Bregman = "kl",
        sampler: Kernel | Changes | None = None,
        interval: Interval | None = None,
        ratio_temperature: float | None = None,
        margin: float | None = None,
        pool: int | None = None,
        start: StartKind | None = None,
        rejuvenation: float | None = None,
        buffer: int | None = None,
        noises: int = 1,
        normalize: bool = True,
        energy_penalty: float = 0.0,
        snapshots: int | None = None,
        centre: bool | None = None,
    ) -> None:
        starts = ChainStarts(start, rejuvenation, buffer)
        super().__init__(
            named_bregman(psi, noises),
            sampler,
            interval,
            ratio_temperature,
            margin,
            pool,
            starts,
            normalize,
            energy_penalty,
            snapshots,
            centre,
        )
