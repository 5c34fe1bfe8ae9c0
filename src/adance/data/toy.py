"""What a two-dimensional law with a known density offers."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class Toy(ABC):
    """A law on the plane.

    Attributes:
        name: key in `TOYS`.
        extent: half-width of a square about the origin that holds all but some 1e-5 of the mass.
        modes: centres (M, 2) of separate clumps of equal mass, or None where there are no such clumps.
    """

    name: str
    extent: float
    modes: Tensor | None

    @abstractmethod
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """`n` independent draws (n, 2), float32, on the generator's device."""

    @abstractmethod
    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-density (B,) in nats at points `x` (B, 2), in the dtype of `x`."""


def device_of(generator: torch.Generator | None) -> torch.device:
    """Where draws by this generator live."""
    return torch.device("cpu") if generator is None else generator.device
