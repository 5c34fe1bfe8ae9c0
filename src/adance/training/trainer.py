"""The training loop."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import broadcast_object_list
from torch import Tensor, nn

from adance.data.dataset import Dataset
from adance.distributed import any_over_ranks, world_size
from adance.energies.conditional import given, takes_condition
from adance.energies.energy import refuse_batch_norm, unwrap
from adance.errors import InputError
from adance.objectives.objective import LossOutput, Recipe, Setting
from adance.objectives.tilt import fit_base
from adance.training.batches import Batches
from adance.training.config import make_config
from adance.training.data_checks import check_energy, check_same_data, evenly_spaced_rows, fingerprint
from adance.training.devices import claim_folder, make_accelerator
from adance.training.doctor import EARLY
from adance.training.ema import WeightAverage
from adance.training.guard import DivergenceGuard
from adance.training.interrupt import interrupt_flag
from adance.training.optimizers import Optimizers
from adance.training.profile import Profile
from adance.training.quality import MakeMetric, Quality
from adance.training.rank_state import share_first_state
from adance.training.read_run import read_run
from adance.training.reporter import Reporter
from adance.training.run import Run
from adance.training.run_folder import RunFolder
from adance.training.run_picture import has_picture
from adance.training.schedule import warn_of_long_warmup
from adance.training.settings import Settings
from adance.training.speed import chain_options
from adance.training.state import TrainingState
from adance.training.trackers import track_into


class Trainer:
    """Trains an energy with an objective on a data set, into a run folder.

    Args:
        energy: The energy, ``(B, *event) -> (B,)``.
        objective: What to minimize.
        data: The data to learn from.
        settings: The settings of the loop.
        out: The run folder, which must not hold a run yet; by default the first free
            ``runs/<data>-<objective>-<number>``.
        device: ``cpu`` or ``cuda``; by default a GPU if there is one.
        trackers: Names of experiment trackers that accelerate supports (``tensorboard``, ``wandb``, ``mlflow``, …).
            They receive settings and metrics; these three also receive pictures of samples.
        allow_batch_norm: Allow batch normalization in the energy.
        show_progress: Show a bar on a terminal; elsewhere log progress at level INFO to the logger ``adance``.
        profile: Measure how the time is spent; see :attr:`profile_table`.
        metric: Makes the metric of samples that is measured every ``evaluate_every`` steps. It is called with the data,
            the number of samples and a seed, and returns a function from a run to a distance; for example
            :class:`adance.evaluation.SampleDistance`.

    Attributes:
        profile_table: After :meth:`fit`, the seconds and share of each part of training, if ``profile`` is on.

    Raises:
        InputError: The parts do not fit each other; nothing has been written.
    """

    def __init__(
        self,
        energy: nn.Module,
        objective: Recipe,
        data: Dataset,
        settings: Settings | None = None,
        out: str | Path | None = None,
        *,
        device: str | None = None,
        trackers: Sequence[str] = (),
        allow_batch_norm: bool = False,
        show_progress: bool = True,
        profile: bool = False,
        metric: MakeMetric | None = None,
        _resuming: bool = False,
    ) -> None:
        self.settings = settings or Settings()
        if self.settings.warmup > self.settings.steps > 0:
            warn_of_long_warmup(self.settings)
        if not (allow_batch_norm or _resuming):
            refuse_batch_norm(energy)
        self.accelerator = make_accelerator(device, trackers)
        if self.accelerator.num_processes > 1:
            refuse_batch_norm(energy, "train in one process")
        self.data = data
        self.generator = torch.Generator(self.device).manual_seed(self.settings.seed + self.accelerator.process_index)
        self.batches = Batches(
            data, self.settings, self.device, self.accelerator.process_index, self.accelerator.num_processes
        )
        name = f"{Path(data.name).stem}-{type(objective).__name__}"
        self.folder = claim_folder(self.accelerator, Path("runs"), name) if out is None else RunFolder(out)
        self._new = not _resuming
        self.profile, self.profile_table = Profile(self.device, profile), ""
        try:
            if not _resuming:
                self.folder.refuse_taken()
            if trackers:
                track_into(self.accelerator, self.folder.path)
            self.reporter = Reporter(
                self.folder, data, self.settings, self.accelerator, tracked=bool(trackers), shown=show_progress
            )
            self.quality = Quality(self.folder, self.settings, data, metric, self.accelerator.is_main_process)
            self._set_up(energy.to(self.device), objective)
        except BaseException:
            if out is None:
                self._give_up_folder()
            raise

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        data: Dataset | None = None,
        energy: nn.Module | None = None,
        objective: Recipe | None = None,
        steps: int | None = None,
        patience: int | None = None,
        **options: Any,
    ) -> "Trainer":
        """Resume the run in ``folder`` from its last full checkpoint, exactly as if it had not stopped.

        Args:
            folder: The run folder.
            data: The data, if the config cannot load them.
            energy: The energy, if the config cannot rebuild it.
            objective: The objective, if the config cannot rebuild it.
            steps: A new total number of steps.
            patience: A new number of measurements without improvement after which training stops.
            **options: ``device``, ``trackers``, ``show_progress``, ``profile`` and ``metric`` of the constructor.

        Raises:
            InputError: The folder holds no run or cannot be written, or the parts do not fit the run.
        """
        run_folder = RunFolder(folder)
        held = read_run(run_folder, data, energy, objective, steps=steps, patience=patience)
        trainer = cls(held.energy, held.objective, held.data, held.settings, folder, _resuming=True, **options)
        check_same_data(run_folder, trainer.data_description)
        with run_folder.writing():
            trainer._restore()
            if held.has_changed and trainer.accelerator.is_main_process:
                run_folder.write_config(held.config)
        return trainer

    @property
    def device(self) -> torch.device:
        """Where training happens."""
        return torch.device(self.accelerator.device)

    @property
    def step(self) -> int:
        """Optimizer steps done."""
        return self.state.step

    def fit(self) -> Run:
        """Train until ``settings.steps`` and return the run.

        Raises:
            DivergedError: The loss, an energy or a gradient became non-finite, the energies of data and noise moved too
                far apart, or the loss or an energy became far larger than at first; the message names the step and the
                last good checkpoint.
            KeyboardInterrupt: Interrupted by Ctrl-C, SIGTERM or SIGHUP (as :class:`~adance.signals.Interrupted`, which
                names the signal); a checkpoint has been written.
            InputError: The folder already holds another run, or cannot be written; the message names the last good
                checkpoint.
        """
        with self.folder.writing():
            return self._fit()

    def _fit(self) -> Run:
        if self._new:
            self._create()
        began, gradients_before = time.monotonic() - self.state.seconds, self.objective.energy_gradients
        with interrupt_flag() as interrupted, self.reporter.training(self.step):
            if self.step < self.settings.steps:
                self.reporter.announce(unwrap(self.energy), self.recipe, self.step)
            say = self.reporter.progress.say
            while self.step < self.settings.steps and not self.quality.has_stalled(self.step, say):
                out = self._optimize(self.step + 1)
                self.state.step += 1
                self.state.seconds = time.monotonic() - began
                with self.profile.part("logging"):
                    self._look_after(out)
                if self._stopped(interrupted.is_set()):
                    self._stop_if_diverged(out)
                    self._checkpoint()
                    interrupted.raise_if_set()
                    raise KeyboardInterrupt
        with self.profile.part("logging"):
            self._checkpoint()
            self._save_samples()
        self.reporter.end()
        if self.profile.on and self.accelerator.is_main_process:
            x = self.data.batch(torch.zeros(1, dtype=torch.int64)).to(self.device)
            gradients = self.objective.energy_gradients - gradients_before
            self.profile_table = self.profile.table(given(unwrap(self.energy), self.condition), x, gradients)
        return self.run()

    def run(self) -> Run:
        """The run at this step: a frozen copy of the model, with averaged weights if there are any."""
        return self.state.as_run(self.folder, self.data_description)

    def _give_up_folder(self) -> None:
        """Remove the claimed folder, which is still empty."""
        if self.accelerator.is_main_process:
            with suppress(OSError):
                self.folder.path.rmdir()

    def _set_up(self, energy: nn.Module, objective: Recipe) -> None:
        sample = evenly_spaced_rows(self.data).to(self.device)
        fit_base(energy, objective.noise_recipe, sample, self.generator)
        check_energy(energy, sample[:2], self.data)
        self.conditional = takes_condition(energy)
        self.data_description = fingerprint(self.data, sample)
        own_fit = getattr(energy, "fit_base", None)
        if own_fit is not None:
            own_fit(sample)
        share_first_state(energy)
        self.energy = energy  # without a data-parallel wrapper: the optimizers average the gradients of processes
        setting = Setting(self.data.event_shape, self.settings.batch_size, self.conditional, self.settings.steps)
        self.recipe, plan = objective.resolve(setting), objective.chain_plan(setting)
        one = given(energy, self.condition)
        self.chains = chain_options(plan, one, sample, self.settings, self.profile.chain)
        self.objective = self.recipe.build(
            self.energy,
            sample,
            batch_size=self.settings.batch_size,
            steps=self.settings.steps,
            generator=self.generator,
            condition=self.condition,
            chains=self.chains,
        ).to(self.device)
        self.objective.start(unwrap(self.energy), sample, self.generator)
        share_first_state(self.objective)
        self.average = WeightAverage(energy, self.settings.ema) if self.settings.ema > 0 else None
        self.optimizers = Optimizers(energy, self.objective, self.settings)
        self.guard = DivergenceGuard(self.device, self.settings.energy_limit)
        self.state = TrainingState(
            unwrap(self.energy),
            self.objective,
            plan,
            objective.kernel(setting),
            self.optimizers,
            self.average,
            self.generator,
            self.guard,
        )
        self.look_every = 1 if self.device.type == "cpu" else 20

    @property
    def condition(self) -> Tensor | None:
        """The first row's label ``(1,)``, for a conditional energy."""
        return self.batches.labels_of(torch.zeros(1, dtype=torch.int64)) if self.conditional else None

    def _optimize(self, step: int) -> LossOutput:
        with self.profile.part("data"):
            x = self.batches.batch(step, self.generator)
        with self.profile.part("forward/backward"):
            condition = {"condition": self.batches.labels(step)} if self.conditional else {}
            out = self.objective.loss(self.energy, x, self.generator, **condition)
            self.optimizers.zero_grad()
            torch.autograd.backward(out.value)
        self.optimizers.average_gradients()
        norm = self.optimizers.clip_gradients()
        self.optimizers.step(step, self.guard.watch(out, norm, step), self.objective.lr_factor)
        self.objective.after_step(self.energy, step, out)
        if self.average is not None:
            self.average.update(unwrap(self.energy), step)
        return out

    def _look_after(self, out: LossOutput) -> None:
        settings, step = self.settings, self.step
        last = step == settings.steps
        due = self.quality.is_due(step)
        at_checkpoint = step % settings.checkpoint_every == 0 or due or last
        if step % self.look_every == 0 or at_checkpoint:
            self._stop_if_diverged(out)
        written = step % settings.log_every == 0 or due or last
        if written or step in EARLY:
            others = self.optimizers.metrics() | (self._distance() if due else {})
            self.reporter.log(out, self.energy, step, self.state.seconds, others, written=written)
        self.reporter.progress.advance(step)
        if at_checkpoint:
            self._checkpoint()
        if settings.sample_every and step % settings.sample_every == 0 and not last:
            self._save_samples()

    def _stop_if_diverged(self, out: LossOutput) -> None:
        """If a step was bad, log a last line of metrics, and raise the error with the likeliest cause."""
        bad = self.guard.diverged_at()
        if bad is not None:
            others = self.optimizers.metrics() | {"diverged_at": bad}
            self.reporter.log(out, self.energy, self.step, self.state.seconds, others)
            (diagnosis,) = broadcast_object_list([self.reporter.watch.diagnosis])  # only the main process looks
            raise self.guard.error(bad, self.folder, diagnosis)

    def _distance(self) -> dict[str, float]:
        with self.profile.part("evaluation"):
            return self.quality.measure(self.run)

    def _save_samples(self) -> None:
        if self.accelerator.is_main_process and has_picture(self.data_description, unwrap(self.energy)):
            with self.profile.part("pictures"):
                self.reporter.save_samples(self.run())

    def _create(self) -> None:
        if self.accelerator.is_main_process:
            config = make_config(self.data, unwrap(self.energy), self.recipe, self.settings)
            self.folder.create(config, self.data_description)
        self._new = False
        self._checkpoint()

    def _stopped(self, interrupted: bool) -> bool:
        """Whether any process was interrupted; several processes ask each other only when they wait for the device."""
        return (world_size() == 1 or self.step % self.look_every == 0) and any_over_ranks(interrupted)

    def _checkpoint(self) -> None:
        self.state.save(self.folder)
        self.accelerator.wait_for_everyone()  # if another process ended now, the one that writes would end too

    def _restore(self) -> None:
        main = self.accelerator.is_main_process
        if main:
            self.folder.remove_parts()
        if not self.state.restore(self.folder, self.settings.seed):
            self._checkpoint()
            return
        if self.settings.steps < self.step:
            raise InputError(f"{self.folder.path} already has {self.step} steps, more than steps={self.settings.steps}")
        if main:
            self.folder.trim_metrics(self.step)
