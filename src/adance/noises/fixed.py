"""Noise from a fixed, normalized density."""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.distributions import Distribution

from adance.energies.analytic import Density, Gaussian, Uniform
from adance.energies.fitted import FittedMixture
from adance.errors import InputError
from adance.noises.distribution import FromDistribution
from adance.noises.noise import Noise, NoiseRecipe, NoiseSample
from adance.numbers import check_count

FittedKind = Literal["gaussian", "uniform", "mixture"]

IMAGE_RANGE = 1.2
"""Half-width of the uniform noise on images: dequantized or noisy ones leave [−1, 1] a little."""


class FixedNoise(Noise):
    """A density that is sampled exactly.

    Args:
        density: A ``torch.distributions.Distribution`` on the device of training, or any object with
            ``sample(n, generator)`` and ``log_prob(x)``.
    """

    def __init__(self, density: Density | Distribution) -> None:
        super().__init__()
        self.density: Density = FromDistribution(density) if isinstance(density, Distribution) else density

    def build(self, data: Tensor, generator: torch.Generator | None = None) -> "FixedNoise":
        """The noise itself.

        Raises:
            InputError: Samples of a given distribution have another shape than ``data``, or are on another device.
        """
        if isinstance(self.density, FromDistribution):
            _check(self.density, data)
        return self

    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> NoiseSample:
        """``n`` independent samples ``(n, *event)``."""
        return NoiseSample(self.density.sample(n, generator).to(data.dtype))

    def energy(self, x: Tensor, sample: NoiseSample | None = None, condition: Tensor | None = None) -> Tensor:
        """``−log p_n(x)`` ``(M,)``."""
        return -self.density.log_prob(x).to(x.dtype)


class FittedNoise(NoiseRecipe):
    """A fixed noise that is fitted to the data.

    Args:
        kind: ``gaussian``: the normal law with the data's mean and standard deviation in each axis. ``uniform``: the
            uniform law on [−1.2, 1.2] for images, on the data's range and a tenth more for vectors. ``mixture``: a
            mixture of normal laws.
        components: Normal laws in a ``mixture``, at least 1.

    Raises:
        InputError: The kind is unknown, or there are fewer than one component.
    """

    def __init__(self, kind: FittedKind = "gaussian", components: int = 10) -> None:
        if kind not in get_args(FittedKind):
            raise InputError(f"unknown noise {kind!r}; one of {', '.join(get_args(FittedKind))}")
        check_count("components", components)
        self.kind, self.components = kind, components

    def build(self, data: Tensor, generator: torch.Generator | None = None) -> FixedNoise:
        """The noise fitted to data ``(N, *event)``."""
        if self.kind == "gaussian":
            return FixedNoise(Gaussian.fitted(data))
        if self.kind == "mixture":
            return FixedNoise(FittedMixture.to_data(data, self.components))
        low, high = _widened(data) if data.ndim == 2 else (-IMAGE_RANGE, IMAGE_RANGE)
        return FixedNoise(Uniform(data.shape[1:], low, high).to(data))


def _check(density: FromDistribution, data: Tensor) -> None:
    if density.event_shape != data.shape[1:]:
        raise InputError(
            f"the noise draws events of shape {tuple(density.event_shape)}, the data's have {tuple(data.shape[1:])}"
        )
    device = density.sample(1, torch.Generator().manual_seed(0)).device
    if device != data.device:
        raise InputError(f"the noise's distribution is on {device}, the data on {data.device}; make it there")


def _widened(data: Tensor) -> tuple[float, float]:
    low, high = float(data.min()), float(data.max())
    room = 0.1 * (high - low) or 1.0
    return low - room, high + room
