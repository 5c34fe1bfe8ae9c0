"""Contrastive objectives: a contrast times a noise times a log-ratio."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from adance.contrasts.bregman import Bregman
from adance.contrasts.contrast import Contrast
from adance.distributed import gather, mean_over_ranks
from adance.energies.conditional import needs_condition
from adance.energies.energy import check_events, evaluate, unwrap
from adance.energies.layers import backward_in
from adance.energies.spectral import power_iteration_held
from adance.errors import InputError
from adance.noises.noise import Noise, NoiseSample, Separation
from adance.numbers import check_real
from adance.objectives.live_rows import LiveRows
from adance.objectives.log_ratio import LogRatio
from adance.objectives.metrics import energy_metrics
from adance.objectives.objective import LossOutput, Objective
from adance.objectives.tilt import tilt_of
from adance.samplers.resampling import effective_sample_share

START_ROWS = 2000


class Contrastive(Objective):
    """Distinguishes data from noise by the log-ratio ``r(x) = (E_n(x) − E_θ(x))/T − c``.

    The loss is the contrast of r on data and on noise, times T (so that gradients keep their scale), divided by Ψ''(1)
    if ``normalize``. At T = 0 it is the contrast's limit for T → 0. Both energies are computed in float32 or better.
    The loss is NaN if a datum is outside the noise's support, as it can be with uniform noise.

    A noise with parameters to train maximizes the same loss, through ``adversary_parameters()``.

    If the noise is the base of a tilted energy, the base cancels from r, so neither side evaluates it.

    Rows whose weight in the gradient is below 1e-8 of the largest count as 0; see
    :class:`~adance.objectives.live_rows.LiveRows`.

    Args:
        contrast: The contrast: turns log-ratios into a loss.
        noise: The noise that data are distinguished from.
        log_ratio: The temperature of the ratio and the treatment of the constant. By default c = 0, and T is that of
            the noise if the contrast's weights are bounded, otherwise 1.
        normalize: Divide by the contrast's curvature Ψ''(1), so that learning rates are comparable between contrasts.
        energy_penalty: Weight α ≥ 0 of the penalty ``α·(mean E₊² + mean E₋²)``.
        backward_dtype: Type of the products in the gradients of :class:`~adance.energies.layers.FastConv2d` layers;
            ``None`` for the type of their weights. Energies do not depend on it.

    Raises:
        InputError: ``energy_penalty`` is below 0 or not finite, or the parts do not fit together.
    """

    def __init__(
        self,
        contrast: Contrast,
        noise: Noise,
        log_ratio: LogRatio | None = None,
        *,
        normalize: bool = True,
        energy_penalty: float = 0.0,
        backward_dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_real("energy_penalty", energy_penalty, 0)
        self.contrast, self.noise = contrast, noise
        self.log_ratio = log_ratio or LogRatio(noise.temperature if contrast.bounded_weights else 1.0)
        self.normalize, self.energy_penalty, self.backward_dtype = normalize, energy_penalty, backward_dtype
        self.rows = LiveRows()
        noise.check_contrast(contrast)
        pair = f"{type(contrast).__name__} with {type(noise).__name__}"
        if self.log_ratio.log_z is not None and (contrast.ignores_constant or not noise.normalized):
            raise InputError(f"{pair} cannot learn log Z: it cancels from the loss, or the noise is not normalized")
        if self.log_ratio.adaptive and self.noise.descent is None:
            raise InputError(f"{pair}: ratio_temperature='auto' needs noise from Langevin chains; set it to a number")
        self._trains_noise = len(self.adversary_parameters()) > 0
        if self._trains_noise and energy_penalty > 0:
            raise InputError(f"{pair}: a trained noise would maximize the energy penalty; set energy_penalty=0")

    @property
    def temperature(self) -> float:
        """T of the ratio."""
        return self.log_ratio.temperature

    @property
    def energy_gradients(self) -> int:
        """Energy gradients spent on the noise's chains so far."""
        return self.noise.energy_gradients

    @property
    def lr_factor(self) -> float:
        """Factor of the learning rate, set by the noise."""
        return self.noise.lr_factor

    @property
    def self_normalizing(self) -> bool:
        """Whether the objective learns the normalized density: the noise's constant is known and does not cancel."""
        known = self.noise.normalized and not self.contrast.ignores_constant
        return known and self.temperature == self.noise.temperature

    def adversary_parameters(self) -> list[nn.Parameter]:
        """The trainable parameters of the noise."""
        return [parameter for parameter in self.noise.parameters() if parameter.requires_grad]

    def log_normalizer(self) -> Tensor | None:
        """The learned log Z; 0 if the energy must normalize itself; ``None`` if the model is not normalized."""
        if self.log_ratio.log_z is not None:
            return self.log_ratio.log_z.detach().clone()
        return torch.zeros(()) if self.self_normalizing else None

    @torch.no_grad()
    def start(self, energy: nn.Module, data: Tensor, generator: torch.Generator | None = None) -> None:
        """Set log Z to ``log E_n[exp(−E)/p_n]`` on up to 2,000 noise samples."""
        if self.log_ratio.log_z is None:
            return
        if needs_condition(energy):
            raise InputError(
                "a conditional energy has a different log Z for each condition, so this objective cannot learn it: use "
                "AdaNCE or another objective without a learned log Z"
            )
        data = data[:START_ROWS]
        sample = self.noise.sample(len(data), data, generator)
        with power_iteration_held(energy), _exact_float32(sample.x):
            tilt = tilt_of(energy, self.noise)
            reference = 0.0 if tilt is not None else self.noise.energy(sample.x, sample)
            log_weights = (reference - evaluate(tilt or energy, sample.x)) / self.temperature
        self.log_ratio.log_z.copy_(log_weights.logsumexp(0) - math.log(len(data)))

    def loss(
        self,
        energy: nn.Module,
        x: Tensor,
        generator: torch.Generator | None = None,
        condition: Tensor | None = None,
    ) -> LossOutput:
        """The loss of a batch ``x`` ``(B, *event)``; data and noise go through the energy in one forward pass."""
        check_events(x)
        n = len(x)
        of_noise = None if condition is None else condition.repeat_interleave(self.contrast.noises, 0)
        sample = self.noise.sample(n * self.contrast.noises, x, generator, of_noise)
        if condition is not None and of_noise is not None:
            condition = torch.cat([condition, of_noise if sample.condition is None else sample.condition])
        if self.log_ratio.adaptive:
            self.log_ratio.follow(self.noise.descent)
        both = torch.cat([x, sample.x])
        # all rows of noise that is the model itself have the same weight
        choose = not sample.from_model and not self._trains_noise
        tilt = tilt_of(unwrap(energy), self.noise) if self.energy_penalty == 0 else None
        with self._evaluating(energy, both):
            evaluated = self.rows.evaluate(tilt or energy, both, condition, choose)
            energies = evaluated.energies
            reference = (
                torch.zeros_like(energies) if tilt is not None else self._reference(both, sample, energies, condition)
            )
        d = self.log_ratio(reference - energies, n, self.contrast)
        d_data, d_noise = self._with_margin(d, n)
        value = self._contrast(d_data, d_noise)
        # a datum outside the noise's support would have no gradient: make the loss NaN instead
        value = torch.where(reference.isfinite().all(), value, torch.nan)
        textbook, detached = value.detach(), energies.detach()
        term = sample.adversary_term(lambda: self._loss_of_each(d_noise.detach().flatten()))
        value = value if term is None else value + term
        if self.energy_penalty > 0:
            value = value + self.energy_penalty * (energies[:n].square().mean() + energies[n:].square().mean())
        if evaluated.connect is not None:
            with self._evaluating(energy, both):
                value = evaluated.connect(value)

        def metrics() -> dict[str, Tensor]:
            base = 0.0 if tilt is None else self.noise.energy(both)
            return self._metrics(textbook, detached + base, d.detach(), n)

        return LossOutput(value, detached[:n], detached[n:], metrics, self._separation(d.detach(), d_data.detach(), n))

    def after_step(self, energy: nn.Module, step: int, out: LossOutput) -> None:
        """Advance the power iteration, and refresh the noise if that is due."""
        super().after_step(energy, step, out)
        assert out.separation is not None
        self.noise.after_step(unwrap(energy), step, out.separation)

    @contextmanager
    def _evaluating(self, energy: nn.Module, x: Tensor) -> Iterator[None]:
        with power_iteration_held(energy), _exact_float32(x), backward_in(energy, self.backward_dtype):
            yield

    def _reference(self, both: Tensor, sample: NoiseSample, energies: Tensor, condition: Tensor | None) -> Tensor:
        """The noise's energies of data and noise ``(B + M,)``."""
        if self.contrast.ignores_noise_energy:
            return torch.zeros_like(energies)
        if sample.from_model:
            return energies.detach()
        with torch.set_grad_enabled(torch.is_grad_enabled() and self._trains_noise):
            return self.noise.energy(both, sample, condition)

    def _with_margin(self, d: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """T·r on data ``(B,)`` and on noise ``(B, M)``; if constants cancel, the margin applies to the data only."""
        margin = self.log_ratio.margin
        if margin == 0:
            return d[:n], d[n:].view(n, -1)
        return d[:n] - margin, d[n:].view(n, -1) - (0.0 if self.contrast.ignores_constant else margin)

    def _contrast(self, d_data: Tensor, d_noise: Tensor) -> Tensor:
        T = self.temperature
        value = (
            self.contrast.zero_temperature_loss(d_data, d_noise)
            if T == 0
            else T * self.contrast(d_data / T, d_noise / T)
        )
        return value / self.contrast.curvature if self.normalize else value

    def _loss_of_each(self, d_noise: Tensor) -> Tensor:
        """The contribution of each noise sample to the loss ``(B·M,)``, times B·M."""
        assert isinstance(self.contrast, Bregman)
        each = self.temperature * self.contrast.s0(d_noise / self.temperature)
        return each / self.contrast.curvature if self.normalize else each

    def _separation(self, d: Tensor, d_data: Tensor, n: int) -> Separation:
        def data_weight() -> Tensor:
            every = gather(d_data)
            return self.contrast.mean_data_weight(every / self.log_ratio.scale(every))

        return Separation(data_weight, lambda: effective_sample_share(gather(d[n:]) / self.noise.temperature))

    def _metrics(self, value: Tensor, energies: Tensor, d: Tensor, n: int) -> dict[str, Tensor]:
        metrics = energy_metrics(mean_over_ranks(value), gather(energies[:n]), gather(energies[n:]))
        if not self.contrast.ignores_noise_energy:
            r = d / self.temperature if self.temperature > 0 else d
            data, noise = gather(r[:n]), gather(r[n:])
            metrics |= {
                "ratio_data": data.mean(),
                "ratio_noise": noise.mean(),
                "ratio_std": torch.cat([data, noise]).std(),
                "effective_sample_share": effective_sample_share(noise),
            }
        if self.log_ratio.log_z is not None:
            metrics["log_z"] = self.log_ratio.log_z.detach().clone()
        if self.log_ratio.adaptive:
            metrics["ratio_temperature"] = d.new_tensor(self.temperature)
        return metrics | self.noise.metrics()


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
