"""The batch of each step, and its augmentation."""

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.data.dequantize import dequantize
from adance.errors import InputError
from adance.training.settings import Settings


class Batches:
    """Batches of a data set as a function of the step alone, so that resuming needs no state.

    Each epoch shuffles the rows by the seed and the number of the epoch, and drops a last, incomplete batch.

    Raises:
        InputError: The data have fewer rows than a batch, or ``dequantize`` or ``flip`` does not apply to them.
    """

    def __init__(self, data: Dataset, settings: Settings, device: torch.device, process: int = 0, of: int = 1) -> None:
        self.data, self.settings, self.device, self.process = data, settings, device, process
        self.rows_per_step = settings.batch_size * of
        if len(data.train) < self.rows_per_step:
            raise InputError(
                f"{data.name} has {len(data.train)} training rows, fewer than one batch of {self.rows_per_step}"
                f"{f' in {of} processes' if of > 1 else ''}; use a smaller batch_size"
            )
        self.level_width = data.transform.level_width if settings.dequantize else 0.0
        if self.level_width is None:
            raise InputError(f"dequantize needs images with quantization levels; {data.name} has none")
        if settings.flip and data.kind != "image":
            raise InputError(f"flip is for images; {data.name} has vectors")
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64)

    def batch(self, step: int, generator: torch.Generator) -> Tensor:
        """This process's batch ``(B, *event)`` of step ``step``, counted from 1, in model units, augmented."""
        return self._augment(self.data.batch(self._rows(step)).to(self.device, non_blocking=True), generator)

    def labels(self, step: int) -> Tensor | None:
        """Labels ``(B,)`` of the rows of step ``step``, if the data have labels."""
        return self.labels_of(self._rows(step))

    def labels_of(self, rows: Tensor) -> Tensor | None:
        """Labels ``(B,)`` of training rows ``(B,)``, if the data have labels."""
        labels = self.data.train_labels
        return None if labels is None else labels[rows].to(self.device)

    def _rows(self, step: int) -> Tensor:
        per_epoch = len(self.data.train) // self.rows_per_step
        epoch, place = divmod(step - 1, per_epoch)
        if epoch != self._epoch:
            shuffle = torch.Generator().manual_seed(self.settings.seed * 1_000_003 + epoch)
            self._epoch, self._order = epoch, torch.randperm(len(self.data.train), generator=shuffle)
        first = place * self.rows_per_step + self.process * self.settings.batch_size
        return self._order[first : first + self.settings.batch_size]

    def _augment(self, x: Tensor, generator: torch.Generator) -> Tensor:
        if self.settings.flip:
            mirrored = torch.rand(len(x), generator=generator, device=x.device) < 0.5
            x = torch.where(mirrored.view(-1, 1, 1, 1), x.flip(-1), x)
        if self.level_width:
            x = dequantize(x, self.level_width, torch.rand(x.shape, generator=generator, device=x.device))
        if self.settings.data_noise > 0:
            x = x + self.settings.data_noise * torch.randn(x.shape, generator=generator, device=x.device)
        return x
