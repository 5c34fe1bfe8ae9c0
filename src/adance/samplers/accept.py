"""The Metropolis decision: which proposals are accepted."""

import torch
from torch import Tensor

from adance.samplers.kernel import ChainState, Step, StepInfo
from adance.samplers.rows import where_rows


def metropolis_accept(state: ChainState, u: Tensor, log_ratio: Tensor, **proposed: Tensor) -> Step:
    """Accept proposals with probability ``min(1, e^log_ratio)`` (thesis 2.2).

    Proposals whose energy is not finite, or whose ratio is NaN, are rejected.

    Args:
        state: The chains.
        u: Uniform numbers ``(B,)``.
        log_ratio: ``(B,)``.
        proposed: Those values of the state that a proposal has for itself, among them ``x`` and ``energy``.
    """
    energy = proposed["energy"]
    probability = torch.where(energy.isfinite() & ~log_ratio.isnan(), log_ratio.clamp(max=0).exp(), 0.0)
    accepted = u < probability
    moved = {name: where_rows(accepted, new, getattr(state, name)) for name, new in proposed.items()}
    norm = state.gradient.flatten(1).norm(dim=1) if "gradient" in proposed else None
    return state._replace(**moved), StepInfo(state.energy, norm, accepted, probability)
