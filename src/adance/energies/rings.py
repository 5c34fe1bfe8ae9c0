"""Concentric rings in the plane."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from adance.energies.mixtures import draw_components
from adance.errors import InputError


class Rings(nn.Module):
    """Rings round the origin: ``p(x) = Σₖ wₖ exp(−(‖x‖ − ρₖ)²/2s²)/Cₖ`` for ``x`` in the plane.

    The radius of ring k has the density ``2πr exp(−(r − ρₖ)²/2s²)/Cₖ`` with
    ``Cₖ = 2π(s² exp(−ρₖ²/2s²) + √(2π) s ρₖ Φ(ρₖ/s))``. It is drawn by rejection from ``N(ρₖ + s²/ρₖ, s²)`` cut at 0,
    since ``r ≤ ρ exp(r/ρ − 1)``.

    Args:
        radii: ρ, positive.
        std: s.
        weights: w, positive; divided by their sum. By default equal.

    Raises:
        InputError: A number is out of range.
    """

    radii: Tensor
    log_weights: Tensor
    log_constants: Tensor

    def __init__(
        self, radii: Sequence[float] = (1.0, 2.0, 3.0), std: float = 0.1, weights: Sequence[float] | None = None
    ) -> None:
        super().__init__()
        weights = [1.0] * len(radii) if weights is None else weights
        if not radii or min(radii) <= 0 or not std > 0 or len(weights) != len(radii) or min(weights) <= 0:
            raise InputError(
                "Rings needs positive radii, std > 0 and as many positive weights as radii, "
                f"got radii={list(radii)}, std={std}, weights={list(weights)}"
            )
        self.std = std
        self.register_buffer("radii", torch.tensor(list(radii)))
        self.register_buffer("log_weights", torch.tensor([math.log(w / sum(weights)) for w in weights]))
        self.register_buffer("log_constants", torch.tensor([math.log(_constant(rho, std)) for rho in radii]))

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``−log p`` ``(B,)``."""
        return -self.log_prob(x)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent draws ``(n, 2)``."""
        rho = self.radii[draw_components(self.log_weights, n, generator)]
        r = torch.full_like(rho, -1.0)
        while len(missing := (r < 0).nonzero().squeeze(1)):
            r[missing] = self._propose(rho[missing], generator)
        angle = 2 * math.pi * torch.rand(r.shape, generator=generator, dtype=r.dtype, device=r.device)
        return r[:, None] * torch.stack([angle.cos(), angle.sin()], 1)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-densities ``(B,)`` of ``x`` ``(B, 2)``."""
        z: Tensor = (torch.linalg.vector_norm(x, dim=1)[:, None] - self.radii) / self.std
        return (self.log_weights - self.log_constants - 0.5 * z.square()).logsumexp(1)

    def _propose(self, rho: Tensor, generator: torch.Generator | None) -> Tensor:
        """One proposal for each radius ``(m,)``; −1 where it is refused."""
        z = torch.randn(rho.shape, generator=generator, dtype=rho.dtype, device=rho.device)
        u = torch.rand(rho.shape, generator=generator, dtype=rho.dtype, device=rho.device)
        r = rho + self.std**2 / rho + self.std * z
        accepted = (r > 0) & (u < r / rho * (1 - r / rho).exp())
        return torch.where(accepted, r, -1.0)


def _constant(rho: float, std: float) -> float:
    below = 0.5 * math.erfc(-rho / (std * math.sqrt(2)))
    tail = std**2 * math.exp(-0.5 * (rho / std) ** 2)
    return 2 * math.pi * (tail + math.sqrt(2 * math.pi) * std * rho * below)
