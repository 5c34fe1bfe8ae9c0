"""Contrastive objectives whose noise is an earlier copy of the model."""

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from adance.contrasts.bregman import Bregman, Logistic
from adance.contrasts.by_name import Psi, named_bregman
from adance.defaults import BUFFER, MARGIN
from adance.energies.conditional import given
from adance.energies.energy import evaluate
from adance.energies.spectral import power_iteration_held
from adance.errors import InputError
from adance.noises.refresh import Interval, check_interval
from adance.noises.snapshot import Snapshot
from adance.numbers import check_count, check_real, whole
from adance.objectives.contrastive import Contrastive
from adance.objectives.log_ratio import LogRatio, RatioTemperature, check_ratio_temperature
from adance.objectives.objective import ChainPlan, Recipe, Setting, Site
from adance.objectives.resolve import (
    Sampler,
    resolve_buffer,
    resolve_finish,
    resolve_interval,
    resolve_pool,
    resolve_ratio_temperature,
    resolve_sampler,
    resolve_snapshots,
    resolve_start,
)
from adance.objectives.snapshot_recipe import SnapshotRecipe
from adance.samplers.persistent_chains import StartKind, check_starts

A = TypeVar("A", bound="_Adaptive")


@dataclass(frozen=True, kw_only=True)
class _Adaptive(Recipe):
    """The settings that :class:`AdaNCE` and :class:`AdaBRM` share."""

    sampler: Sampler = None
    interval: Interval | None = None
    ratio_temperature: RatioTemperature | None = None
    margin: float | None = None
    pool: int | None = None
    start: StartKind | None = None
    rejuvenation: float | None = None
    buffer: int | None = None
    noises: int = 1
    normalize: bool = True
    energy_penalty: float = 0.0
    snapshots: int | None = None
    finish: float | None = None
    center: bool | None = None

    def __post_init__(self) -> None:
        """Check the arguments that are set."""
        buffer = BUFFER if self.buffer is None else self.buffer
        check_starts(self.start or "rejuvenated", self.rejuvenation or 0.0, buffer)
        check_interval("auto" if self.interval is None else self.interval)
        check_ratio_temperature(self.ratio_temperature or 0.0)
        check_real("energy_penalty", self.energy_penalty, 0)
        check_real("margin", self.margin or 0.0)
        check_real("finish", self.finish or 0.0, 0)
        if (self.finish or 0.0) > 1:
            raise InputError(f"finish must be a share of the steps, at most 1, got {self.finish}")
        check_count("pool", self.pool or 0, 0)
        check_count("snapshots", 1 if self.snapshots is None else self.snapshots)
        if self.pool == 0 and (self.snapshots or 1) > 1:
            raise InputError("a mixture of snapshots needs a pool: use a pool above 0, or snapshots=1")
        if self.center and self.margin:
            raise InputError(
                "center=True removes any constant from the log-ratio, so it cannot be combined with a margin"
            )

        self._contrast()

    @abstractmethod
    def _contrast(self) -> Bregman:
        """The contrast.

        Raises:
            InputError: ``psi`` is unknown, or ``noises`` below 1.
        """

    def resolve(self: A, setting: Setting) -> A:
        """The recipe with every ``None`` filled in from :mod:`adance.defaults`.

        Raises:
            InputError: The arguments do not fit each other, the batch or the energy.
        """
        chosen = self._choose(setting)
        return replace(
            self,
            ratio_temperature=chosen.ratio_temperature,
            margin=chosen.margin,
            center=chosen.center,
            **vars(chosen.snapshot),
        )

    def chain_plan(self, setting: Setting) -> ChainPlan:
        """The chains in training: a pool at every refresh, or a batch at every step."""
        return self._choose(setting).snapshot.plan(setting)

    def _choose(self, setting: Setting) -> "_Chosen":
        contrast = self._contrast()
        rows = setting.batch_size * contrast.noises
        center = (self.margin is None and whole(self.interval) != 1) if self.center is None else self.center
        sampler = resolve_sampler(self.sampler, setting)
        start, rejuvenation = resolve_start(self.start, self.rejuvenation, sampler, setting)
        interval = whole(self.interval) or resolve_interval(start, setting)
        pool = resolve_pool(self.pool, interval, rows, setting)
        buffer = resolve_buffer(self.buffer, start, max(pool, rows))
        snapshots = self.snapshots or resolve_snapshots(contrast, center, interval, pool, setting)
        finish = resolve_finish(interval, setting) if self.finish is None else self.finish
        snapshot = SnapshotRecipe(sampler, start, rejuvenation, interval, pool, buffer, snapshots, finish)
        temperature, margin = self.ratio_temperature, self.margin
        if temperature is None:
            temperature = resolve_ratio_temperature(contrast, center, snapshot, setting)
        if margin is None:
            margin = MARGIN if contrast.bounded_weights and interval != 1 and not center else 0.0
        return _Chosen(snapshot, temperature, margin, center)

    def build_for(self, site: Site) -> Contrastive:
        chosen = self._choose(site.setting)
        noise = chosen.snapshot.build(site)
        ratio = LogRatio(chosen.ratio_temperature, "centered" if chosen.center else "margin", chosen.margin)
        if not noise.is_model:
            _warn_of_mismatch(site, noise, ratio.temperature)
        return Contrastive(
            self._contrast(),
            noise,
            ratio,
            normalize=self.normalize,
            energy_penalty=self.energy_penalty,
            backward_dtype=site.chains.dtype,
        )


@dataclass(frozen=True)
class _Chosen:
    """The parts of an adaptive objective, with every number filled in."""

    snapshot: SnapshotRecipe
    ratio_temperature: RatioTemperature
    margin: float
    center: bool


@torch.no_grad()
def _warn_of_mismatch(site: Site, noise: Snapshot, temperature: float) -> None:
    x = site.data[: site.setting.batch_size]
    with power_iteration_held(site.energy), torch.autocast(x.device.type, enabled=False):
        own = evaluate(given(site.energy, site.condition), x)
        gap = float((noise.energy(x, condition=site.condition) - own).abs().max())
    if 0 < temperature < 10 * gap:
        warnings.warn(
            f"the energy differs from its own frozen copy by up to {gap:.2g}, more than a tenth of the ratio's "
            f"temperature {temperature:.2g}: does its forward use dropout or other randomness?",
            stacklevel=4,
        )


@dataclass(frozen=True)
class AdaNCE(_Adaptive):
    """Self-adapting noise-contrastive estimation (thesis Algorithm 3.1): the noise is an earlier copy of the model.

    With ``r = (E_m(x) − E_θ(x) − δ)/T − c``, ``(B,)`` on data and ``(B, ν)`` on noise, the loss is
    ``−E_data[log σ(r − log ν)] − ν E_noise[log σ(log ν − r)]``, times T. c is fitted in each batch: it stands for the
    unknown log(Z_θ/Z_m). T limits how far the chains of one snapshot move the model: the exact solution for one
    snapshot is ``E_θ = E_m − T log(p_data/p_m)`` up to a constant. See docs/long-intervals.md.

    Estimates the density up to its constant, at the chain's temperature. With ``interval=1`` it is maximum likelihood.
    Choose it for images, and for data that no simple noise covers: it needs no second model, and with reused pools
    fewer chains than maximum likelihood. Every ``None`` is filled in from :mod:`adance.defaults`.

    Args:
        sampler: Kernel of the noise's chains, or some of the default one's arguments, such as ``{"steps": 10}``. By
            default ``Langevin(steps=30, step_size=1, noise_std=0.005, bounds=(-1, 1))`` for images and
            ``MALA(steps=50)`` at T = 1 for vectors.
        interval: K, optimizer steps between snapshots; ``auto`` takes a new snapshot when little is left to learn from
            the last one, see :class:`~adance.noises.Snapshot`. By default 10 for images, ``auto`` for reweighted
            chains, 50 for other vectors.
        ratio_temperature: Temperature T of the log-ratio. ``auto`` is the energy that one step of a Langevin chain
            descends, at least 0.005. By default the chains' temperature if they are reweighted or ``center`` is
            off; otherwise ``auto`` for images (0.005 for other kernels than Langevin), and 0.01 times the chains'
            temperature for vectors. The thesis uses 1.
        margin: Fixed δ, in units of energy, instead of the fitted c. By default 0, or 0.01 if ``center`` is off and
            K > 1.
        pool: Number of chains run for each snapshot, from whose ends all batches are drawn; by default
            ``batch·⌈K/10⌉``. 0 runs fresh chains at every step, as in Algorithm 3.1. For reweighted chains,
            the minimum number of chains moved for each snapshot; batches are drawn from the whole buffer.
        start: Where chains start. By default ``reweighted`` for vectors with exact chains: at each refresh the buffer
            is resampled by how much likelier the new snapshot makes each chain, so that chains follow the model without
            crossing between its modes (Carbone et al. 2023), and only a few must move. Otherwise ``rejuvenated``: the
            ends of earlier chains, of which a share restarts from noise. See :class:`~adance.samplers.ChainStarts`.
        rejuvenation: R, the share of chains that restart from noise; by default 0.25 for images, 0.02 for vectors. If
            you set it without ``start``, chains start ``rejuvenated``.
        buffer: Chains kept between snapshots; by default 5,000, or the pool size if that is larger.
        noises: ν, noise samples per datum.
        normalize: Divide the loss by Ψ''(1) = ν/(1 + ν).
        energy_penalty: Weight α of the penalty ``α·(mean E₊² + mean E₋²)``.
        snapshots: m; the noise is a mixture of the last m snapshots, whose log Z are assumed to be equal. By default 3
            for images at a fixed K over 10 with a fitted c, where it keeps the model from oscillating; otherwise 1.
        finish: Share of the steps, at the end of training, that have K = 1, which is maximum likelihood. By default 0.
            It needs the number of steps, which :class:`~adance.Trainer` knows.
        center: Fit the constant c in each batch; ``False`` sets it to 0. On by default, unless ``margin`` is given or
            K is 1 (where c is 0 anyway).

    Raises:
        InputError: ``interval``, ``noises``, ``buffer`` or ``snapshots`` is below 1, ``pool``, ``ratio_temperature`` or
            ``energy_penalty`` below 0, ``rejuvenation`` or ``finish`` outside [0, 1], or two of them exclude each
            other.
    """

    sampler: Sampler = None

    def _contrast(self) -> Logistic:
        return Logistic(self.noises)


@dataclass(frozen=True)
class AdaBRM(_Adaptive):
    """Self-adapting Bregman ratio matching (thesis 4.10): any convex Ψ, with an earlier copy of the model as noise.

    The loss is ``E_noise[S0(r)] − E_data[S1(r)]`` with ``r = (E_m(x) − E_θ(x) − δ)/T − c``, ``(B,)`` on data and
    ``(B, ν)`` on noise, times T; c as in :class:`AdaNCE`.

    Estimates the density up to its constant, at the chain's temperature. With ``interval=1`` its gradient is Ψ''(1)
    times maximum likelihood's for any Ψ. Choose it to compare Ψ. With the logistic Ψ it is AdaNCE, which allows the
    longest intervals on images.

    Args:
        psi: Ψ by name, or a Bregman object, with its own number of noise samples.
        sampler: As in :class:`AdaNCE`.
        interval: As in :class:`AdaNCE`; ``auto`` only for the logistic Ψ or reweighted chains.
        ratio_temperature: T of the log-ratio; by default as in :class:`AdaNCE`, but 1 for a Ψ with unbounded weights
            unless chains are reweighted.
        margin: δ in units of energy; by default as in :class:`AdaNCE`.
        pool: As in :class:`AdaNCE`.
        start: As in :class:`AdaNCE`.
        rejuvenation: As in :class:`AdaNCE`.
        buffer: As in :class:`AdaNCE`.
        noises: ν, noise samples per datum.
        normalize: Divide the loss by Ψ''(1).
        energy_penalty: Weight α of the penalty ``α·(mean E₊² + mean E₋²)``.
        snapshots: As in :class:`AdaNCE`, by default 1 for a Ψ with unbounded weights.
        finish: As in :class:`AdaNCE`.
        center: As in :class:`AdaNCE`.

    Raises:
        InputError: ``psi`` is unknown, or an argument is outside the range given for :class:`AdaNCE`.
    """

    psi: Psi | Bregman = "kl"

    def resolve(self, setting: Setting) -> "AdaBRM":
        """As for :class:`AdaNCE`, with Ψ as an object that leaves no number open."""
        return replace(super().resolve(setting), psi=self._contrast())

    def _contrast(self) -> Bregman:
        return named_bregman(self.psi, self.noises)
