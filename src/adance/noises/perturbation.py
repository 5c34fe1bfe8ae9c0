"""Perturbed data as noise, for conditional noise-contrastive estimation."""

import math
from typing import Literal

import torch
from torch import Tensor

from adance.contrasts import Conditional, Contrast
from adance.errors import InputError
from adance.noises.noise import Noise, NoiseRecipe, NoiseSample

Bandwidth = float | Literal["scaled"]


class Perturbation(NoiseRecipe):
    """Recipe of :class:`PerturbationNoise`: ``y = x + σξ`` for each datum x.

    Args:
        bandwidth: σ for all axes; ``scaled`` sets ``σᵢ = sᵢ/√D`` in axis i of D, at least 1e-3, with the data's
            standard deviation sᵢ: for normal data the expected log-ratio of a pair is then ½ for any D.

    Raises:
        InputError: ``bandwidth`` is neither ``scaled`` nor a finite number above 0.
    """

    def __init__(self, bandwidth: Bandwidth = "scaled") -> None:
        if bandwidth != "scaled" and not (isinstance(bandwidth, (int, float)) and 0 < bandwidth < math.inf):
            raise InputError(f"bandwidth must be 'scaled' or a finite number above 0, got {bandwidth!r}")
        self.bandwidth = bandwidth

    def build(self, data: Tensor, generator: torch.Generator | None = None) -> "PerturbationNoise":
        """The noise with the bandwidth for data ``(N, *event)``."""
        if self.bandwidth == "scaled":
            std = data.std(0, correction=0) / data[0].numel() ** 0.5
            return PerturbationNoise(std.clamp(min=1e-3))
        return PerturbationNoise(torch.full_like(data[0], float(self.bandwidth)))


class PerturbationNoise(Noise):
    """``y = x + σξ`` for each datum x: symmetric, so p_n(y|x) cancels and the energy is 0.

    If σ is too small or too large, the gradient vanishes (thesis 3.1).

    Args:
        std: σ ``(*event)``.
    """

    normalized = False
    std: Tensor

    def __init__(self, std: Tensor) -> None:
        super().__init__()
        self.register_buffer("std", std)

    def check_contrast(self, contrast: Contrast) -> None:
        """Check that the contrast compares a datum only with its own perturbations.

        Raises:
            InputError: The contrast is not :class:`Conditional`.
        """
        if not isinstance(contrast, Conditional):
            raise InputError(f"{type(contrast).__name__} with PerturbationNoise: only Conditional compares pairs")

    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> NoiseSample:
        """``n/B`` perturbations of each datum of ``data`` ``(B, *event)``, grouped by datum."""
        centers = data.repeat_interleave(n // len(data), 0)
        draws = torch.randn(centers.shape, generator=generator, dtype=data.dtype, device=data.device)
        return NoiseSample(centers + self.std * draws)

    def energy(self, x: Tensor, sample: NoiseSample | None = None, condition: Tensor | None = None) -> Tensor:
        """Zero ``(M,)``."""
        return x.new_zeros(len(x))

    def metrics(self) -> dict[str, Tensor]:
        """The mean bandwidth."""
        return {"bandwidth": self.std.mean()}
