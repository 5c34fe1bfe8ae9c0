"""The log-ratio of model and noise, and how its unknown constant is treated."""

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from adance.configurable import Configurable
from adance.contrasts.contrast import Contrast
from adance.distributed import gather
from adance.errors import InputError
from adance.numbers import check_real

Constant = Literal["none", "learned", "centered", "margin"]
RatioTemperature = float | Literal["auto"]

BOUNDS = 0.005, 10.0
"""Smallest and largest T with ``auto``."""


def check_ratio_temperature(temperature: object) -> None:
    """Check T of a ratio.

    Raises:
        InputError: It is neither ``auto`` nor a finite number of at least 0.
    """
    if temperature != "auto":
        check_real("ratio_temperature", temperature, 0)


class LogRatio(Configurable, nn.Module):
    """``r(x) = (E_n(x) − E_θ(x))/T − c``, computed as ``T·r`` in units of energy.

    If the energies are not normalized, r lacks ``log(Z_θ/Z_n)``; c takes its place.

    Args:
        temperature: T ≥ 0; at 0 the loss is its limit for T → 0. ``auto``: the energy that one step of the noise's
            chains descends, at least 0.005, so that T follows the scale of the energy; see :meth:`follow`.
        constant: ``none``: c = 0. ``learned``: c is a parameter, log Z. ``centered``: c minimizes the loss of the
            batch, without a gradient; with several processes, of their combined batch. ``margin``: c = δ/T: the loss
            lowers E_θ on data until it is δ below E_n, and raises it on noise only where it is more than δ below E_n.
        margin: δ, in units of energy.

    Raises:
        InputError: ``temperature`` is neither ``auto`` nor a finite number of at least 0, ``constant`` unknown, or
            ``margin`` not finite, or not 0 with another ``constant`` than ``margin``.
    """

    temperature: float

    def __init__(self, temperature: RatioTemperature = 1.0, constant: Constant = "none", margin: float = 0.0) -> None:
        super().__init__()
        check_ratio_temperature(temperature)
        check_real("margin", margin)
        if constant not in get_args(Constant):
            raise InputError(f"unknown constant {constant!r}: use one of {', '.join(get_args(Constant))}")
        if constant != "margin" and margin != 0:
            raise InputError(f"margin={margin} needs constant='margin', got constant={constant!r}")
        self.adaptive = temperature == "auto"
        self.temperature = BOUNDS[0] if temperature == "auto" else temperature
        self.constant, self.margin = constant, margin
        self.log_z = nn.Parameter(torch.zeros(())) if constant == "learned" else None

    def follow(self, descent: float | None) -> None:
        """With ``auto``, set T for noise whose chains descend by ``descent`` in one step."""
        if self.adaptive and descent is not None and math.isfinite(descent):
            self.temperature = min(max(descent, BOUNDS[0]), BOUNDS[1])

    def forward(self, d: Tensor, n: int, contrast: Contrast) -> Tensor:
        """``T·r`` ``(B + M,)`` without the margin, from ``d = E_n − E_θ`` of ``n`` = B data followed by noise."""
        if self.log_z is not None:
            d = d - self.temperature * self.log_z
        if self.constant == "centered":
            data, noise = gather(d.detach()[:n]), gather(d.detach()[n:])
            scale = self.scale(data, noise)
            d = d - scale * contrast.log_z_offset(data / scale, noise / scale)
        return d

    def scale(self, *parts: Tensor) -> Tensor | float:
        """T, or at T = 0 a number that is small compared with the largest value in ``parts``."""
        return self.temperature or torch.cat(parts).abs().max().clamp(min=1e-30) * 1e-6
