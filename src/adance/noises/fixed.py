"""Noise from a fixed, normalised density."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from adance.energies.analytic import Density, Gaussian, Uniform
from adance.energies.fitted import FittedMixture
from adance.errors import InputError
from adance.noises.distribution import FromDistribution
from adance.noises.noise import Noise

FixedKind = Literal["gaussian", "uniform", "mixture"]
KINDS = ("gaussian", "uniform", "mixture")

IMAGE_RANGE = 1.2
"""Half-width of the uniform noise on images: dequantised or noisy ones leave [−1, 1] a little."""


class FixedNoise(Noise):
    """A density that is sampled exactly.

    Args:
        density: ``gaussian``: the normal law with the data's mean and standard deviation in each axis. ``uniform``: the
            uniform law on [−1.2, 1.2] for images, on the data's range and a tenth more for vectors. ``mixture``: a
            mixture of normal laws fitted to the data. Or a ``torch.distributions.Distribution`` on the device of
            training, or any object with ``sample(n, generator)`` and ``log_prob(x)``.
        components: Normal laws in a ``mixture``.

    Raises:
        InputError: There is no noise of that name, or fewer than one component.
    """

    temperature = 1.0
    normalized = True

    def __init__(self, density: FixedKind | Density | Distribution = "gaussian", components: int = 10) -> None:
        super().__init__()
        if isinstance(density, str) and density not in KINDS:
            raise InputError(f"unknown noise {density!r}; {', '.join(KINDS)}, or an object with sample and log_prob")
        if components < 1:
            raise InputError(f"a mixture needs at least one component, got {components}")
        self.kind = density if isinstance(density, str) else None
        self.components = components
        self.density: Density | None = None
        if isinstance(density, Distribution):
            self.density = FromDistribution(density)
        elif not isinstance(density, str):
            self.density = density

    def prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        """Fit what was given by name to the data ``(N, *event)``.

        Raises:
            InputError: Draws of a given distribution have another shape than the data, or are on another device.
        """
        if self.kind == "gaussian":
            self.density = Gaussian.fitted(data)
        elif self.kind == "uniform":
            low, high = _widened(data) if data.ndim == 2 else (-IMAGE_RANGE, IMAGE_RANGE)
            self.density = Uniform(data.shape[1:], low, high).to(data)
        elif self.kind == "mixture":
            self.density = FittedMixture.to_data(data, self.components)
        elif isinstance(self.density, FromDistribution):
            _check(self.density, data)

    def draw(self, n: int, data: Tensor, generator: torch.Generator | None) -> Tensor:
        """``n`` independent draws ``(n, *event)``."""
        assert self.density is not None, "prepare() first"
        return self.density.sample(n, generator).to(data.dtype)

    def energy(self, x: Tensor, model_energy: Tensor) -> Tensor:
        """``−log p_n(x)`` ``(B,)``."""
        assert self.density is not None, "prepare() first"
        return -self.density.log_prob(x).to(x.dtype)


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
