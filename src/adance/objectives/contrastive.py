"""Contrastive objectives: a contrast times a noise."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from adance.contrasts.bregman import Bregman, Logistic
from adance.energies.energy import evaluate
from adance.energies.spectral import power_iteration_held
from adance.errors import InputError
from adance.noises.fixed import FixedNoise
from adance.noises.noise import Noise
from adance.noises.snapshot import Snapshot
from adance.objectives.measures import auc, effective_sample_share
from adance.objectives.objective import LossOutput, Objective
from adance.samplers.kernel import Kernel
from adance.samplers.starts import ChainStarts, StartKind


class Contrastive(Objective):
    """Tells data from noise by the log-ratio ``r(x) = (E_n(x) − E_θ(x))/T − log Z − δ/T``.

    The loss is the contrast of r on data and on noise, times T (so that gradients keep their scale), divided by Ψ''(1)
    when ``normalize``. At T = 0 it is the contrast's limit. Both energies are computed in float32 or better.

    Args:
        contrast: What turns log-ratios into a loss.
        noise: What data are told from.
        ratio_temperature: T; by default the noise's.
        margin: δ, in units of energy: data push until they lie δ below the noise's energy, and noise resists only where
            it has sunk by more than δ.
        normalize: Divide by Ψ''(1), so that learning rates compare between contrasts.
        energy_penalty: α of a term ``α·(mean E₊² + mean E₋²)``.

    The loss is NaN where a datum lies outside the noise's support, as it can with uniform noise.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        contrast: Bregman,
        noise: Noise,
        ratio_temperature: float | None = None,
        margin: float = 0.0,
        normalize: bool = True,
        energy_penalty: float = 0.0,
    ) -> None:
        super().__init__()
        if ratio_temperature is not None and not ratio_temperature >= 0:
            raise InputError(f"ratio_temperature must be 0 or more, got {ratio_temperature}")
        if energy_penalty < 0:
            raise InputError(f"energy_penalty must be 0 or more, got {energy_penalty}")
        self.contrast, self.noise = contrast, noise
        self.ratio_temperature, self.margin = ratio_temperature, margin
        self.normalize, self.energy_penalty = normalize, energy_penalty
        self.log_z: nn.Parameter | None = None

    @property
    def temperature(self) -> float:
        """T of the ratio."""
        if self.ratio_temperature is not None:
            return self.ratio_temperature
        return self.noise.temperature

    def _prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        self.noise.prepare(energy, data, batch * self.contrast.noises, generator)
        if isinstance(self.noise, Snapshot):
            self._warn_of_mismatch(energy, data[:batch])

    def loss(self, energy: nn.Module, x: Tensor, generator: torch.Generator | None = None) -> LossOutput:
        """The loss of a batch ``x`` ``(B, *event)``; data and noise go through the energy in one forward pass."""
        if not self.prepared:
            self.prepare(energy, x, generator=generator)
        n, T = len(x), self.temperature
        both = torch.cat([x, self.noise.draw(n * self.contrast.noises, x, generator)])
        with power_iteration_held(energy), _exact_float32(both):
            energies = evaluate(energy, both)
            with torch.no_grad():
                reference = self.noise.energy(both, energies)
        d = reference - energies
        if self.log_z is not None:
            d = d - T * self.log_z
        shifted = d - self.margin
        d_data, d_noise = shifted[:n], shifted[n:].view(n, -1)
        value = self.contrast.limit(d_data, d_noise) if T == 0 else T * self.contrast(d_data / T, d_noise / T)
        # a datum where the noise has no mass would have no gradient: the loss says so instead
        value = torch.where(reference.isfinite().all(), value, torch.nan)
        if self.normalize:
            value = value / self.contrast.curvature
        if self.energy_penalty > 0:
            value = value + self.energy_penalty * (energies[:n].square().mean() + energies[n:].square().mean())
        detached = energies.detach()
        return LossOutput(
            value, detached[:n], detached[n:], lambda: self._measure(value.detach(), detached, d.detach(), n)
        )

    def _after_step(self, energy: nn.Module, step: int) -> None:
        self.noise.after_step(energy, step)

    def _measure(self, value: Tensor, energies: Tensor, d: Tensor, n: int) -> dict[str, Tensor]:
        r = d / self.temperature if self.temperature > 0 else d
        measures = {
            "loss": value,
            "energy_data": energies[:n].mean(),
            "energy_noise": energies[n:].mean(),
            "ratio_data": r[:n].mean(),
            "ratio_noise": r[n:].mean(),
            "ratio_std": r.std(),
            "effective_sample_share": effective_sample_share(r[n:]),
            "auc": auc(energies[:n], energies[n:]),
        }
        if self.log_z is not None:
            measures["log_z"] = self.log_z.detach().clone()
        return measures | self.noise.metrics()

    @torch.no_grad()
    def _warn_of_mismatch(self, energy: nn.Module, x: Tensor) -> None:
        with power_iteration_held(energy), _exact_float32(x):
            own = evaluate(energy, x)
            gap = float((self.noise.energy(x, own) - own).abs().max())
        if 0 < self.temperature < 10 * gap:
            warnings.warn(
                f"the energy differs from its own frozen copy by up to {gap:.2g}, more than a tenth of the ratio's "
                f"temperature {self.temperature:.2g}: is there dropout or other randomness in its forward?",
                stacklevel=4,
            )


class AdaNCE(Contrastive):
    """Self-adapting noise-contrastive estimation (thesis Algorithm 3.1): the noise is an earlier copy of the model.

    Estimates the density up to its constant, at the chain's temperature. With ``interval=1`` it is maximum likelihood.

    Args:
        sampler: Kernel of the noise's chains. By default ``Langevin(steps=30, step_size=1, noise_std=0.005)`` for
            images and ``MALA(steps=20)`` at T = 1 for vectors.
        interval: K, optimiser steps between snapshots.
        ratio_temperature: T of the ratio; by default the sampler's, σ²/(2α). The thesis has 1.
        margin: δ in units of energy; by default 0.01, and 0 at K = 1.
        pool: Chains drawn for each snapshot and reused; by default ``batch·⌈K/10⌉``. 0: a fresh batch every step, as
            Algorithm 3.1 has it.
        start: Where chains start.
        rejuvenation: R, the share of chains that start from noise.
        buffer: Chains kept between snapshots.
        noises: ν, noise samples per datum.
        normalize: Divide the loss by Ψ''(1) = ν/(1 + ν).
        energy_penalty: α of a term ``α·(mean E₊² + mean E₋²)``.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        sampler: Kernel | None = None,
        interval: int = 50,
        ratio_temperature: float | None = None,
        margin: float | None = None,
        pool: int | None = None,
        start: StartKind = "rejuvenated",
        rejuvenation: float = 0.25,
        buffer: int = 5000,
        noises: int = 1,
        normalize: bool = True,
        energy_penalty: float = 0.0,
    ) -> None:
        if margin is None:
            margin = 0.0 if interval == 1 else 0.01
        noise = Snapshot(sampler, ChainStarts(start, rejuvenation, buffer), interval, pool)
        super().__init__(Logistic(noises), noise, ratio_temperature, margin, normalize, energy_penalty)
        self.sampler = sampler

    def _prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        super()._prepare(energy, data, batch, generator)
        assert isinstance(self.noise, Snapshot)
        self.sampler = self.init_args["sampler"] = self.noise.sampler


class NCE(Contrastive):
    """Noise-contrastive estimation (thesis 2.13): fixed noise, and log Z learned unless told otherwise.

    Estimates the normalised density ``exp(−E(x) − log Z)``, at T = 1. Works where the noise covers the data closely.

    Args:
        noise: ``gaussian`` or ``uniform``, fitted to the data.
        noises: ν, noise samples per datum.
        learn_log_z: Learn log Z as a parameter; else it is 0, and the energy must be able to normalise itself.
        normalize: Divide the loss by Ψ''(1) = ν/(1 + ν).
        energy_penalty: α of a term ``α·(mean E₊² + mean E₋²)``.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        noise: Literal["gaussian", "uniform"] = "gaussian",
        noises: int = 1,
        learn_log_z: bool = True,
        normalize: bool = True,
        energy_penalty: float = 0.0,
    ) -> None:
        super().__init__(Logistic(noises), FixedNoise(noise), None, 0.0, normalize, energy_penalty)
        self.log_z = nn.Parameter(torch.zeros(())) if learn_log_z else None

    def log_normalizer(self) -> Tensor:
        """The learned log Z, or 0."""
        return torch.zeros(()) if self.log_z is None else self.log_z.detach().clone()


@contextmanager
def _exact_float32(x: Tensor) -> Iterator[None]:
    """No autocast and no TF32: at a small temperature the ratio would be made of rounding errors."""
    with torch.autocast(x.device.type, enabled=False):
        if x.device.type != "cuda":
            yield
            return
        precision = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = False
        try:
            with torch.backends.cudnn.flags(allow_tf32=False):
                yield
        finally:
            torch.backends.cuda.matmul.allow_tf32 = precision
