"""Noise from a fixed, normalised density."""

from typing import Literal

import torch
from torch import Tensor, nn

from adance.energies.analytic import Density, Gaussian, Uniform
from adance.errors import InputError
from adance.noises.noise import Noise

IMAGE_RANGE = 1.2
"""Half-width of the uniform noise on images: dequantised or noisy ones leave [−1, 1] a little."""


class FixedNoise(Noise):
    """A density that is sampled exactly.

    Args:
        density: ``gaussian``: the normal law with the data's mean and standard deviation in each axis. ``uniform``: the
            uniform law on [−1.2, 1.2] for images, on the data's range and a tenth more for vectors. Or an object with
            ``sample(n, generator)`` and ``log_prob(x)``.
    """

    temperature = 1.0
    normalized = True

    def __init__(self, density: Literal["gaussian", "uniform"] | Density = "gaussian") -> None:
        super().__init__()
        if isinstance(density, str) and density not in ("gaussian", "uniform"):
            raise InputError(f"unknown noise {density!r}; gaussian, uniform, or an object with sample and log_prob")
        self.kind = density if isinstance(density, str) else None
        self.density = None if isinstance(density, str) else density

    def prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        """Fit ``gaussian`` and ``uniform`` to the data ``(N, *event)``."""
        if self.kind == "gaussian":
            self.density = Gaussian.fitted(data)
        elif self.kind == "uniform":
            low, high = _widened(data) if data.ndim == 2 else (-IMAGE_RANGE, IMAGE_RANGE)
            self.density = Uniform(data.shape[1:], low, high).to(data)

    def draw(self, n: int, data: Tensor, generator: torch.Generator | None) -> Tensor:
        """``n`` independent draws ``(n, *event)``."""
        assert self.density is not None, "prepare() first"
        return self.density.sample(n, generator)

    def energy(self, x: Tensor, model_energy: Tensor) -> Tensor:
        """``−log p_n(x)`` ``(B,)``."""
        assert self.density is not None, "prepare() first"
        return -self.density.log_prob(x)


def _widened(data: Tensor) -> tuple[float, float]:
    low, high = float(data.min()), float(data.max())
    room = 0.1 * (high - low) or 1.0
    return low - room, high + room
