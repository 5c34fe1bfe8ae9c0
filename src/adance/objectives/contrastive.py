"""Contrastive objectives: a contrast times a noise."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from adance.contrasts.bregman import Bregman
from adance.contrasts.conditional import Conditional
from adance.contrasts.contrast import Contrast
from adance.energies.energy import evaluate
from adance.energies.spectral import power_iteration_held
from adance.errors import InputError
from adance.noises.noise import Noise
from adance.noises.snapshot import Snapshot
from adance.objectives.measures import auc
from adance.objectives.objective import LossOutput, Objective
from adance.samplers.weights import effective_sample_share

START_ROWS = 2000


class Contrastive(Objective):
    """Tells data from noise by the log-ratio ``r(x) = (E_n(x) − E_θ(x))/T − log Z − δ/T``.

    The loss is the contrast of r on data and on noise, times T (so that gradients keep their scale), divided by Ψ''(1)
    when ``normalize``. At T = 0 it is the contrast's limit. Both energies are computed in float32 or better.

    A noise that is trained against the model maximises the very same loss, by ``adversary_parameters()``.

    Args:
        contrast: What turns log-ratios into a loss.
        noise: What data are told from.
        ratio_temperature: T; by default the noise's where the contrast's weights saturate, else 1.
        margin: δ, in units of energy: data push until they lie δ below the noise's energy, and noise resists only where
            it has sunk by more than δ.
        normalize: Divide by the contrast's curvature Ψ''(1), so that learning rates compare between contrasts.
        energy_penalty: α of a term ``α·(mean E₊² + mean E₋²)``.
        learn_log_z: Learn log Z as a parameter.
        centre: Take from r, in each batch, the constant at which the loss is least. An unnormalised noise leaves
            log(Z_θ/Z_n) out of r; this is its estimate, and no gradient passes through it.

    The loss is NaN where a datum lies outside the noise's support, as it can with uniform noise.

    Raises:
        InputError: A number is out of range, or the parts do not fit together.
    """

    def __init__(
        self,
        contrast: Contrast,
        noise: Noise,
        ratio_temperature: float | None = None,
        margin: float = 0.0,
        normalize: bool = True,
        energy_penalty: float = 0.0,
        learn_log_z: bool = False,
        centre: bool = False,
    ) -> None:
        super().__init__()
        if ratio_temperature is not None and not 0 <= ratio_temperature < math.inf:
            raise InputError(f"ratio_temperature must be 0 or more, and finite, got {ratio_temperature}")
        if not math.isfinite(margin):
            raise InputError(f"margin must be a finite energy, got {margin}")
        if not 0 <= energy_penalty < math.inf:
            raise InputError(f"energy_penalty must be 0 or more, and finite, got {energy_penalty}")
        _refuse_misfits(contrast, noise, energy_penalty, learn_log_z)
        if centre and (learn_log_z or margin != 0):
            raise InputError("a fitted constant takes log Z and a margin out of the ratio again; give one of them")
        self.contrast, self.noise = contrast, noise
        self.ratio_temperature, self.margin = ratio_temperature, margin
        self.normalize, self.energy_penalty, self.centre = normalize, energy_penalty, centre
        self.log_z = nn.Parameter(torch.zeros(())) if learn_log_z else None

    @property
    def temperature(self) -> float:
        """T of the ratio."""
        if self.ratio_temperature is not None:
            return self.ratio_temperature
        return self.noise.temperature if self.contrast.saturates else 1.0

    @property
    def self_normalizing(self) -> bool:
        """Whether it learns the normalised density: the noise's constant is known, and does not cancel."""
        known = self.noise.normalized and not self.contrast.ignores_constant
        return known and self.temperature == self.noise.temperature

    def adversary_parameters(self) -> list[nn.Parameter]:
        """The noise's, where it is trained against the model."""
        return self.noise.adversary_parameters()

    def log_normalizer(self) -> Tensor | None:
        """The learned log Z, 0 where the energy must normalise itself, ``None`` where there is no claim."""
        if self.log_z is not None:
            return self.log_z.detach().clone()
        return torch.zeros(()) if self.self_normalizing else None

    def _prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        self.noise.prepare(energy, data, batch * self.contrast.noises, generator)
        if isinstance(self.noise, Snapshot):
            if self.noise.until_served and not (self.noise.reweights or self.contrast.saturates):
                name = type(self.contrast).__name__
                raise InputError(f"interval='auto' goes by weights that fall as data are told apart; {name}'s do not")
            self._warn_of_mismatch(energy, data[:batch])

    @torch.no_grad()
    def start(self, energy: nn.Module, data: Tensor, generator: torch.Generator | None = None) -> None:
        """Set log Z to ``log E_n[exp(−E)/p_n]`` on up to 2,000 noise samples: it need not be found from 0."""
        if self.log_z is None:
            return
        data = data[:START_ROWS]
        noise = self.noise.draw(len(data), data, generator)
        with power_iteration_held(energy), _exact_float32(noise):
            energies = evaluate(energy, noise)
            log_weights = (self.noise.energy(noise, energies) - energies) / self.temperature
        self.log_z.copy_(log_weights.logsumexp(0) - math.log(len(noise)))

    def loss(self, energy: nn.Module, x: Tensor, generator: torch.Generator | None = None) -> LossOutput:
        """The loss of a batch ``x`` ``(B, *event)``; data and noise go through the energy in one forward pass."""
        if not self.prepared:
            self.prepare(energy, x, generator=generator)
        n, T = len(x), self.temperature
        both = torch.cat([x, self.noise.draw(n * self.contrast.noises, x, generator)])
        with power_iteration_held(energy), _exact_float32(both):
            energies = evaluate(energy, both)
            with torch.set_grad_enabled(torch.is_grad_enabled() and self.noise.adversarial):
                reference = self.noise.energy_of_batch(both, n, energies)
        d = reference - energies
        if self.log_z is not None:
            d = d - T * self.log_z
        if self.centre:
            d = d - self._constant(d.detach(), n)
        # where a constant cancels, a margin on both sides would too
        noise_margin = 0.0 if self.contrast.ignores_constant else self.margin
        d_data, d_noise = d[:n] - self.margin, d[n:].view(n, -1) - noise_margin
        seen, followed = d_data.detach(), d.detach()[n:]
        self.noise.observe(
            lambda: self.contrast.pull(seen / self._scale(seen)),
            lambda: effective_sample_share(followed / self.noise.temperature),
        )
        value = self.contrast.limit(d_data, d_noise) if T == 0 else T * self.contrast(d_data / T, d_noise / T)
        # a datum where the noise has no mass would have no gradient: the loss says so instead
        value = torch.where(reference.isfinite().all(), value, torch.nan)
        if self.normalize:
            value = value / self.contrast.curvature
        textbook = value.detach()
        if self.noise.adversarial:
            term = self.noise.adversary_term(self._reward(d_noise.detach()) if self.noise.rewarded else None)
            value = value if term is None else value + term
        if self.energy_penalty > 0:
            value = value + self.energy_penalty * (energies[:n].square().mean() + energies[n:].square().mean())
        detached = energies.detach()
        return LossOutput(value, detached[:n], detached[n:], lambda: self._measure(textbook, detached, d.detach(), n))

    def _constant(self, d: Tensor, n: int) -> Tensor:
        scale = self._scale(d)
        return scale * self.contrast.constant(d[:n] / scale, d[n:] / scale)

    def _scale(self, d: Tensor) -> Tensor | float:
        """T, and in the limit T = 0 next to nothing."""
        return self.temperature or d.abs().max().clamp(min=1e-30) * 1e-6

    def _after_step(self, energy: nn.Module, step: int) -> None:
        self.noise.after_step(energy, step)

    def _reward(self, d_noise: Tensor) -> Tensor:
        """Each noise sample's own part of the loss ``(B·M,)``, times B·M."""
        assert isinstance(self.contrast, Bregman)
        T = self.temperature
        reward = T * self.contrast.s0(d_noise.flatten() / T)
        return reward / self.contrast.curvature if self.normalize else reward

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


def _refuse_misfits(contrast: Contrast, noise: Noise, energy_penalty: float, learn_log_z: bool) -> None:
    pair = f"{type(contrast).__name__} with {type(noise).__name__}"
    if noise.paired and not isinstance(contrast, Conditional):
        raise InputError(f"{pair}: noise around each datum needs the Conditional contrast")
    if learn_log_z and (contrast.ignores_constant or not noise.normalized):
        raise InputError(f"{pair} cannot learn log Z: it cancels, or the noise's own is unknown")
    if noise.adversarial and energy_penalty > 0:
        raise InputError(f"{pair}: an energy penalty would be maximised by the noise; give energy_penalty=0")
    if noise.rewarded and not isinstance(contrast, Bregman):
        raise InputError(f"{pair}: REINFORCE needs a Bregman contrast, whose loss is a sum over samples")


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
