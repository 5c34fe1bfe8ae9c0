"""Statistics of the steps of chains: means over the chains and, on request, positions."""

from typing import NamedTuple

import torch
from torch import Tensor


class StepInfo(NamedTuple):
    """Statistics of one step, each ``(B,)``.

    Attributes:
        energy: Energy at the start of the step.
        gradient_norm: ``‖∇E‖`` at the start of the step; ``None`` for kernels without gradients.
        accepted: Whether the proposal was accepted; ``None`` for unadjusted kernels.
        probability: Acceptance probability of the proposal, for adaptation.
    """

    energy: Tensor
    gradient_norm: Tensor | None = None
    accepted: Tensor | None = None
    probability: Tensor | None = None


class Recorder:
    """Collects one :class:`StepInfo` per step and reduces them a few at a time, so that memory stays bounded.

    Args:
        x: Starts ``(B, *event)``.
        steps: Steps to come.
        thin: Positions are kept after every ``thin``-th step; 0 keeps none.
    """

    CHUNK = 64

    def __init__(self, x: Tensor, steps: int, thin: int = 0) -> None:
        self.thin = thin
        self.finite = x.new_ones(len(x), dtype=torch.bool)
        self.means: dict[str, Tensor] = {}
        self.positions = x.new_empty((steps // thin, *x.shape)) if thin else None
        self._x, self._steps, self._done = x, steps, 0
        self._pending: list[StepInfo] = []

    def add(self, i: int, info: StepInfo, x: Tensor) -> None:
        """Record step ``i`` (counted from 1), which ended at ``x``."""
        self._pending.append(info)
        if len(self._pending) == self.CHUNK:
            self.flush()
        if self.positions is not None and i % self.thin == 0:
            self.positions[i // self.thin - 1] = x

    def flush(self) -> None:
        """Reduce what is pending."""
        if not self._pending:
            return
        self.finite &= ~torch.stack([info.energy for info in self._pending]).isnan().any(0)
        for name in ("energy", "gradient_norm", "accepted"):
            values = [getattr(info, name) for info in self._pending]
            if values[0] is not None:
                rows = slice(self._done, self._done + len(values))
                known = self.means.setdefault(name, self._x.new_empty(self._steps))
                known[rows] = torch.stack(values).to(self._x.dtype).nanmean(1)
        self._done += len(self._pending)
        self._pending.clear()

    def mean(self, name: str) -> Tensor:
        """The mean over chains of the statistic ``name`` at each step ``(steps,)``; empty if the kernel has none."""
        return self.means.get(name, self._x.new_empty(0))
