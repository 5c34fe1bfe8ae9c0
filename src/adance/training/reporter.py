"""What training reports: metrics, trackers, progress, pictures of samples."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from adance.atomic import atomic_write
from adance.data.dataset import Dataset
from adance.energies.conditional import given, needs_condition, takes_condition
from adance.energies.energy import eval_mode, evaluate, unwrap
from adance.objectives.objective import LossOutput, Recipe
from adance.training.doctor import Watch
from adance.training.progress import TrainingProgress
from adance.training.run import Run
from adance.training.run_folder import RunFolder
from adance.training.run_picture import save_array, save_density, save_picture
from adance.training.schedule import learning_rate
from adance.training.settings import Settings
from adance.training.trackers import start_trackers, track_picture


class Reporter:
    """Reports to the run folder, to trackers and to the log; of several processes only the main one reports.

    Args:
        folder: The run folder.
        data: The training data.
        settings: The numbers of the loop.
        accelerator: Accelerate's view of processes and trackers.
        tracked: Whether to report to trackers.
        shown: Whether to show progress.
    """

    def __init__(
        self, folder: RunFolder, data: Dataset, settings: Settings, accelerator: Any, tracked: bool, shown: bool
    ) -> None:
        self.folder, self.data, self.settings, self.accelerator = folder, data, settings, accelerator
        self.tracked, self.shown = tracked, shown and accelerator.is_main_process
        self.progress = TrainingProgress(0, settings.steps, False)
        self.watch = Watch(folder)

    @contextmanager
    def training(self, first: int) -> Iterator[None]:
        """While the loop runs from step ``first`` on, show progress; start the trackers first.

        Raises:
            InputError: A tracker cannot start.
        """
        if self.tracked:
            config = self.folder.read_config() if self.accelerator.is_main_process else {}
            start_trackers(self.accelerator, self.folder.path, config)
        self.progress = TrainingProgress(first, self.settings.steps, self.shown)
        try:
            with self.progress:
                yield
        except BaseException:
            self.end()
            raise

    def announce(self, energy: nn.Module, objective: Recipe, step: int) -> None:
        """Log what is trained on what, from step ``step`` on."""
        weights = sum(weight.numel() for weight in energy.parameters())
        what = f"{type(energy).__name__} with {weights:,} weights by {type(objective).__name__}"
        where = f"{self.data.name}, {len(self.data.train):,} rows: steps {step} to {self.settings.steps}"
        processes, rows = self.accelerator.num_processes, self.settings.batch_size
        device = self.accelerator.device.type
        if processes > 1:
            device += f" in {processes} processes, each with {rows} of the {processes * rows} rows of a batch"
        self.progress.say(f"training {what} on {where} on {device}, into {self.folder.path}")

    def end(self) -> None:
        """Close the trackers at the end of the run."""
        if self.tracked:
            self.accelerator.end_training()

    def log(
        self,
        out: LossOutput,
        energy: nn.Module,
        step: int,
        seconds: float,
        others: Mapping[str, float],
        *,
        written: bool = True,
    ) -> None:
        """Report the metrics of step ``step``, energies of training and held-out rows, and other numbers.

        Warns about likely causes of poor learning.

        Args:
            out: The loss of the step.
            energy: The energy after it.
            step: Optimizer steps done.
            seconds: Seconds that they took.
            others: Other metrics: those of the optimizer, and the distance of samples if it is measured.
            written: Whether to write and show the metrics; otherwise they are only checked.
        """
        row = {name: float(value) for name, value in out.metrics.items()}
        train, held_out = self._energies(energy, "train"), self._energies(energy, "test")
        row["energy_train"], row["energy_held_out"] = float(train.mean()), float(held_out.mean())
        if len(train) > 1:
            row["energy_std"] = float(train.std())
        row["learning_rate"] = learning_rate(self.settings, step) * row.get("lr_factor", 1.0)
        row = {"step": step, "seconds": round(seconds, 3), **row, **others}
        if self.accelerator.is_main_process:
            self.watch.look(row)
        if not written:
            return
        if self.accelerator.is_main_process:
            self.folder.append_metrics(row)
        if self.tracked:
            self.accelerator.log(row, step=step)
        self.progress.report(step, row)

    def save_samples(self, run: Run) -> None:
        """Draw a picture into the run folder: the density in the plane, or samples of images with an array of them."""
        picture = self.folder.samples / f"{run.step:08d}.png"
        if self.data.kind != "image":
            with atomic_write(picture) as part:
                save_density(run, None, part, self.data)
            self._track(picture, run.step)
            return
        n, labels = 64, None
        if needs_condition(run.energy) and self.data.train_labels is not None:
            labels = self.data.train_labels[:n].to(run.device)
            n = len(labels)
        self.progress.say(f"drawing {n} samples: chains of {run.sampling_steps} steps")
        run = run if labels is None else run.given(labels)
        samples = run.sample(n, seed=self.settings.seed)
        with atomic_write(picture.with_suffix(".npz")) as part:
            save_array(run, samples, part)
        with atomic_write(picture) as part:
            save_picture(run, samples, part)
        self._track(picture, run.step)

    def _track(self, picture: Path, step: int) -> None:
        if self.tracked:
            track_picture(self.accelerator, picture, step)

    @torch.no_grad()
    def _energies(self, energy: nn.Module, split: Literal["train", "test"]) -> Tensor:
        """Energies of fixed rows of a split, evenly spaced because files are often sorted."""
        data, batch = self.data, self.accelerator.num_processes * self.settings.batch_size
        count = len(data.train if split == "train" else data.test)
        rows = torch.linspace(0, count - 1, min(count, 4 * batch), dtype=torch.float64).round().long()
        x = data.batch(rows, split).to(self.accelerator.device)
        labels = data.train_labels if split == "train" else data.test_labels
        energy = unwrap(energy)
        condition = labels[rows].to(x.device) if labels is not None and takes_condition(energy) else None
        with eval_mode(energy):
            return evaluate(given(energy, condition), x)
