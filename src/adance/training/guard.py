"""Detection of divergence without waiting for the device at every step."""

import torch
from torch import Tensor

from adance.distributed import mean_over_ranks
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

    def watch(self, out: LossOutput, gradient_norm: Tensor, step: int) -> Tensor:
        """1.0 if this step, counted from 1, or an earlier one was bad, else 0.0; on the device."""
        data, noise = out.energy_data, out.energy_noise
        bad = ~out.value.detach().isfinite() | ~data.isfinite().all() | ~noise.isfinite().all()
        bad |= ~gradient_norm.isfinite()
        sizes = torch.stack([out.value.detach().double(), data.mean().double()]).abs()
        if self.scales is None:
            self.scales = sizes.clamp(min=1)
        bad |= (sizes > self.energy_limit * self.scales).any()
        gap = data.mean() - noise.mean() if len(noise) > 0 else torch.zeros_like(out.value.detach())
        bad_share, gap = mean_over_ranks(torch.stack([bad.to(gap.dtype), gap])).unbind()
        bad = (bad_share > 0) | (gap.abs() > self.energy_limit)
        self.first_bad = torch.where((self.first_bad == 0) & bad, step, self.first_bad)
        return (self.first_bad > 0).float()

    def diverged_at(self) -> int | None:
        """The first bad step, or ``None``; waits for the device."""
        return int(self.first_bad) or None

    def error(self, bad: int, folder: RunFolder, diagnosis: Diagnosis | None) -> DivergedError:
        """The error about a bad step.

        Args:
            bad: The step.
            folder: The run folder, whose last good checkpoint the message names.
            diagnosis: The checks of the run; the message has the first finding.
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
