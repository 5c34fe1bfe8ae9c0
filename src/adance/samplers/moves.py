"""Shared by kernels: the Metropolis decision, row-wise choice, and adaptation of step sizes in warm-up."""

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


def initial_step(step_size: float, given: Tensor | None, x: Tensor) -> tuple[Tensor, Tensor]:
    """The first step size and its number of updates; a step size that is given counts as adapted by 60 updates."""
    if given is None:
        return x.new_tensor(step_size), x.new_tensor(0)
    return given, x.new_tensor(60)


def robbins_monro(
    step_size: Tensor, updates: Tensor, probability: Tensor, target: float, gain: float
) -> tuple[Tensor, Tensor]:
    """Robbins–Monro on the logarithm: ``log h ← log h + gain·max(1, n/20)^(−0.6)·(acceptance − target)`` at update n.

    The first twenty updates search at full gain; after them the gains' sum still diverges and that of their squares
    does not, so that h settles (Andrieu and Thoms 2008, section 4).

    Args:
        step_size: h, one number, steered by the mean acceptance; or one for each chain ``(B,)``, by its own.
        updates: Updates so far, one number.
        probability: Acceptance probabilities ``(B,)``.
        target: Acceptance to reach.
        gain: Change of log h at the first updates, for each unit of acceptance error.
    """
    acceptance = probability if step_size.ndim else probability.mean()
    n = updates + 1
    return step_size * (gain * (n / 20).clamp(min=1) ** -0.6 * (acceptance - target)).exp(), n
