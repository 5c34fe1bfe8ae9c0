"""Noise around each datum, for conditional noise-contrastive estimation."""

import torch
from torch import Tensor, nn

from adance.errors import InputError
from adance.noises.noise import Noise


class Around(Noise):
    """``y = x + σξ`` for each datum x: a symmetric p_n(y|x), which cancels from the ratio of a pair: its energy is 0.

    Where σ is too small or too large the gradient vanishes (thesis 3.1). By default ``σᵢ = sᵢ/√D`` in axis i of D,
    with the data's standard deviation sᵢ: for normal data the expected log-ratio of a pair is then ½ whatever D.

    Args:
        bandwidth: σ, one number for all axes; by default from the data.

    Raises:
        InputError: The bandwidth is not positive.
    """

    temperature = 1.0
    normalized = False
    paired = True
    std: Tensor

    def __init__(self, bandwidth: float | None = None) -> None:
        super().__init__()
        if bandwidth is not None and not bandwidth > 0:
            raise InputError(f"bandwidth must be more than 0, got {bandwidth}")
        self.bandwidth = bandwidth

    def prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        """Set σ from the data ``(N, *event)``; at least 1e-3 where it is not given."""
        if self.bandwidth is None:
            std = data.std(0, correction=0) / data[0].numel() ** 0.5
            self.register_buffer("std", std.clamp(min=1e-3))
        else:
            self.register_buffer("std", torch.full_like(data[0], self.bandwidth))

    def draw(self, n: int, data: Tensor, generator: torch.Generator | None) -> Tensor:
        """``n/B`` draws around each datum of ``data`` ``(B, *event)``, those of one datum in succession."""
        centers = data.repeat_interleave(n // len(data), 0)
        draws = torch.randn(centers.shape, generator=generator, dtype=data.dtype, device=data.device)
        return centers + self.std * draws

    def energy(self, x: Tensor, model_energy: Tensor) -> Tensor:
        """Zero ``(B,)``."""
        return torch.zeros_like(model_energy)

    def metrics(self) -> dict[str, Tensor]:
        """The mean bandwidth."""
        return {"bandwidth": self.std.mean()}
