"""Densities in closed form: each is an energy with a normalized ``log_prob`` and exact samples."""

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn


@runtime_checkable
class Density(Protocol):
    """A density with exact samples and a normalized log-density."""

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, *event)``."""
        ...

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
        ...


class ExactDensity(nn.Module):
    """A density with exact samples and a normalized ``log_prob``; as an energy it is ``−log p``.

    Args:
        like: An event with the shape, dtype and device of the samples.
    """

    origin: Tensor

    def __init__(self, like: Tensor) -> None:
        super().__init__()
        self.register_buffer("origin", torch.zeros_like(like), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``−log p`` ``(B,)`` of ``x`` ``(B, *event)``."""
        return -self.log_prob(x)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, *event)``."""
        raise NotImplementedError

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
        raise NotImplementedError

    def _normal(self, n: int, generator: torch.Generator | None) -> Tensor:
        """Standard normal numbers ``(n, *event)``."""
        origin = self.origin
        return torch.randn((n, *origin.shape), generator=generator, dtype=origin.dtype, device=origin.device)

    def _uniform(self, n: int, generator: torch.Generator | None) -> Tensor:
        """Numbers ``(n,)``, uniform in [0, 1)."""
        return torch.rand(n, generator=generator, dtype=self.origin.dtype, device=self.origin.device)


class Gaussian(ExactDensity):
    """The normal distribution with independent axes; mean ``μ`` and standard deviation ``s`` have the event's shape."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__(mean)
        self.register_buffer("mean", mean)
        self.register_buffer("std", std.expand_as(mean).clone())

    @classmethod
    def fitted(cls, x: Tensor) -> "Gaussian":
        """Fit to the mean and standard deviation (at least 1e-3) of each axis of ``x`` ``(N, *event)``."""
        return cls(x.mean(0), x.std(0, correction=0).clamp(min=1e-3))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, *event)``."""
        return self.mean + self.std * self._normal(n, generator)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
        squares = ((x - self.mean) / self.std).square().flatten(1).sum(1)
        return -0.5 * (squares + self.mean.numel() * math.log(2 * math.pi)) - self.std.log().sum()


class Uniform(ExactDensity):
    """The uniform distribution on the box ``[low, high]^event``; outside it the log-density is −∞."""

    low: Tensor
    high: Tensor

    def __init__(self, event_shape: Sequence[int], low: float = -1.0, high: float = 1.0) -> None:
        super().__init__(torch.zeros(tuple(event_shape)))
        self.register_buffer("low", torch.full(tuple(event_shape), low))
        self.register_buffer("high", torch.full(tuple(event_shape), high))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, *event)``."""
        draws = torch.rand((n, *self.low.shape), generator=generator, dtype=self.low.dtype, device=self.low.device)
        return self.low + (self.high - self.low) * draws

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
        inside = ((x >= self.low) & (x <= self.high)).flatten(1).all(1)
        level = -(self.high - self.low).log().sum()
        return torch.where(inside, level, -torch.inf)


class GaussianBase(nn.Module):
    """The term ``½‖x − μ‖²/s²``, without its constant, fitted to data; ``s`` is one number."""

    center: Tensor
    scale: Tensor

    def __init__(self, event_shape: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("center", torch.zeros(tuple(event_shape)))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)``."""
        return 0.5 * self.standardize(x).square().flatten(1).sum(1)

    def standardize(self, x: Tensor) -> Tensor:
        """``(x − μ)/s``."""
        return (x - self.center) / self.scale

    @torch.no_grad()
    def fit(self, x: Tensor) -> None:
        """Set ``μ`` to the mean of ``x`` ``(B, *event)``, ``s`` to the root mean square deviation (1 if 0)."""
        self.center.copy_(x.mean(0))
        scale = (x - x.mean(0)).square().mean().sqrt()
        self.scale.copy_(torch.where(scale > 0, scale, 1.0))
