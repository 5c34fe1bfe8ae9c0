"""Shared by kernels: the Metropolis decision, and the row-wise choice that follows it."""

import torch
from torch import Tensor

from adance.energies.energy import Energy, evaluate


@torch.no_grad()
def energies(energy: Energy, x: Tensor) -> Tensor:
    """Energies ``(B,)`` of ``x`` ``(B, *event)`` without a graph."""
    return evaluate(energy, x)


def metropolis_accept(
    log_ratio: Tensor, new_energy: Tensor, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Call :func:`metropolis_accept_by` with numbers drawn from ``generator``."""
    u = torch.rand(log_ratio.shape, generator=generator, dtype=log_ratio.dtype, device=log_ratio.device)
    return metropolis_accept_by(u, log_ratio, new_energy)


def metropolis_accept_by(u: Tensor, log_ratio: Tensor, new_energy: Tensor) -> tuple[Tensor, Tensor]:
    """Accept proposals with probability ``min(1, e^log_ratio)`` (thesis 2.2); returns which, and the probabilities.

    Proposals whose energy is not finite, or whose ratio is NaN, are rejected.

    Args:
        u: Uniform numbers ``(B,)``.
        log_ratio: ``(B,)``.
        new_energy: Energies of the proposals ``(B,)``.
    """
    probability = torch.where(new_energy.isfinite() & ~log_ratio.isnan(), log_ratio.clamp(max=0).exp(), 0.0)
    return u < probability, probability


def expand_rows(values: Tensor, x: Tensor) -> Tensor:
    """One number, or one for each chain ``(B,)``, shaped to broadcast against ``x`` ``(B, *event)``."""
    return values.view(-1, *[1] * (x.ndim - 1)) if values.ndim else values


def where_rows(taken: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Row by row, ``new`` where ``taken`` ``(B,)``, else ``old``."""
    return torch.where(expand_rows(taken, new), new, old)
