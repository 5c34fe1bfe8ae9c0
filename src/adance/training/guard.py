"""Detection of divergence without waiting for the device at every step."""

import torch
from torch import Tensor

from adance.distributed import mean_over_ranks, world_size
from adance.errors import DivergedError
from adance.objectives.objective import LossOutput
from adance.training.doctor import Diagnosis
from adance.training.run_folder import RunFolder


class DivergenceGuard:
    """Records on the device the first bad step: from then on updates are masked.

    A step is bad if the loss, an energy or the gradient is not finite, the mean energies of data and noise differ by
    more than ``energy_limit``, or the loss or the mean energy of data is more than ``energy_limit`` times as large as
    at the first step (if that was below 1: more than ``energy_limit``). With several processes a step is bad for all of
    them if it is for one.

    Args:
        device: Where the record is kept.
        energy_limit: The bound on all of these.

    Attributes:
        scales: Sizes ``(2,)`` of the loss and of the mean energy of data at the first step, at least 1; ``None`` before
            it.
    """

    def __init__(self, device: torch.device, energy_limit: float) -> None:
        self.energy_limit = energy_limit
        self.first_bad = torch.zeros((), dtype=torch.int64, device=device)
        self.scales: Tensor | None = None
        self._limit: tuple[Tensor, Tensor] | None = None  # the scales, and the limits that follow from them

    def watch(self, out: LossOutput, gradient_norm: Tensor, step: int) -> Tensor:
        """1.0 if this step, counted from 1, or an earlier one was bad, else 0.0; on the device."""
        # a mean of energies is finite only if all of them are, and a comparison with nan is false
        value, data = out.value.detach(), out.energy_data.mean()
        gap = data - out.energy_noise.mean() if len(out.energy_noise) > 0 else torch.zeros_like(value)
        sizes = torch.stack([value, data, gradient_norm]).double().abs()
        if self.scales is None:
            self.scales = sizes[:2].clamp(min=1)
        good = (sizes <= self._limits(self.scales)).all()
        if world_size() > 1:
            good_share, gap = mean_over_ranks(torch.stack([good.to(gap.dtype), gap])).unbind()
            good = good_share == 1
        bad = ~(good & (gap.abs() <= self.energy_limit))
        self.first_bad = torch.where((self.first_bad == 0) & bad, step, self.first_bad)
        return (self.first_bad > 0).float()

    def _limits(self, scales: Tensor) -> Tensor:
        """The largest sizes ``(3,)`` of the loss, the mean energy of data and the gradient's norm."""
        if self._limit is None or self._limit[0] is not scales:
            largest = scales.new_full((1,), torch.finfo(scales.dtype).max)
            self._limit = scales, torch.cat([self.energy_limit * scales, largest])
        return self._limit[1]

    def diverged_at(self) -> int | None:
        """The first bad step, or ``None``; waits for the device."""
        return int(self.first_bad) or None

    def error(self, bad: int, folder: RunFolder, diagnosis: Diagnosis | None) -> DivergedError:
        """The error about a bad step.

        Args:
            bad: The step.
            folder: The run folder, whose last good checkpoint the message names.
            diagnosis: The result of the checks on the run; the message has the first finding.
        """
        saved = folder.checkpoint_steps()  # none on a machine where no process writes
        good = folder.checkpoint(saved[-1]) if saved else "none on this machine"
        first = diagnosis.findings[0] if diagnosis and diagnosis.findings else None
        cause = "" if first is None else f"; likely cause: {first.cause} (try: {first.cure})"
        return DivergedError(
            f"training diverged at step {bad}: the loss, an energy or a gradient is not finite, or the mean "
            f"energies of data and noise differ by more than {self.energy_limit:g}, or the loss or the mean "
            f"energy of data is more than {self.energy_limit:g} times its size at the first step"
            f"{cause}; last good checkpoint: {good}"
        )
