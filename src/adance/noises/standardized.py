"""The data's location and scale, for noises that are networks."""

import math

import torch
from torch import Tensor, nn


class Standardizer(nn.Module):
    """``z = (x − m)/s`` on flattened events, with the mean m and standard deviation s (at least 1e-3) of ``data``."""

    center: Tensor
    scale: Tensor

    def __init__(self, data: Tensor) -> None:
        super().__init__()
        self.event_shape = data.shape[1:]
        self.register_buffer("center", data.flatten(1).mean(0))
        self.register_buffer("scale", data.flatten(1).std(0, correction=0).clamp(min=1e-3))

    def forward(self, x: Tensor) -> Tensor:
        """``z`` ``(B, D)`` of ``x`` ``(B, *event)``."""
        return (x.flatten(1) - self.center) / self.scale

    def back(self, z: Tensor) -> Tensor:
        """``x`` ``(B, *event)`` of ``z`` ``(B, D)``."""
        return (self.center + self.scale * z).view(-1, *self.event_shape)

    def log_volume(self) -> Tensor:
        """``log |dx/dz|``."""
        return self.scale.log().sum()


def standard_normal_log_prob(z: Tensor) -> Tensor:
    """Log-densities ``(…)`` of ``z`` ``(…, D)`` under N(0, I)."""
    return -0.5 * (z.square().sum(-1) + z.shape[-1] * math.log(2 * math.pi))


def randn(n: int, dimension: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard normal samples ``(n, dimension)`` of the dtype and device of ``like``."""
    return torch.randn((n, dimension), generator=generator, dtype=like.dtype, device=like.device)
