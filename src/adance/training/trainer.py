"""The training loop."""

import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from adance.data.dataset import Dataset
from adance.energies.analytic import Gaussian
from adance.energies.energy import evaluate, reading, refuse_batch_norm, unwrap
from adance.energies.frozen import freeze
from adance.errors import DivergedError, InputError
from adance.objectives.objective import LossOutput, Objective
from adance.training import checkpoint as ckpt
from adance.training.average import WeightAverage
from adance.training.batches import Batches
from adance.training.config import data_of, energy_of, make_config, objective_of, same_data, seeded, settings_of
from adance.training.devices import make_accelerator
from adance.training.files import whole_file
from adance.training.guard import DivergenceGuard
from adance.training.interrupt import interrupt_flag
from adance.training.optimizers import Optimizers
from adance.training.profile import Profile
from adance.training.progress import TrainingProgress
from adance.training.run import BUFFER, Run, has_picture, save_picture
from adance.training.run_folder import RunFolder
from adance.training.schedule import learning_rate
from adance.training.settings import Settings
from adance.training.speed import set_chains

PREPARE_ROWS = 10_000


class Trainer:
    """Trains an energy with an objective on a data set, into a run folder.

    Args:
        energy: The energy, ``(B, *event) -> (B,)``.
        objective: What to minimise.
        data: What to learn from.
        settings: The numbers of the loop.
        out: The run folder, which must not hold a run; by default the first free ``runs/<data>-<objective>-<number>``.
        device: ``cpu``, ``cuda``, …; by default the best there is.
        trackers: Names of experiment trackers that accelerate knows (``tensorboard``, ``wandb``, …).
        allow_batch_norm: Train an energy that contains batch normalisation all the same.
        show_progress: Print progress to standard error.
        profile: At the end print to standard error where the time went.

    Raises:
        InputError: The parts do not fit together; nothing has been written.
    """

    def __init__(
        self,
        energy: nn.Module,
        objective: Objective,
        data: Dataset,
        settings: Settings | None = None,
        out: str | Path | None = None,
        *,
        device: str | None = None,
        trackers: Sequence[str] = (),
        allow_batch_norm: bool = False,
        show_progress: bool = True,
        profile: bool = False,
        _resuming: bool = False,
    ) -> None:
        self.settings = settings or Settings()
        if not (allow_batch_norm or _resuming):
            refuse_batch_norm(energy)
        name = f"{Path(data.name).stem}-{type(objective).__name__}"
        self.folder = RunFolder.free(Path("runs"), name) if out is None else RunFolder(out)
        if not _resuming:
            self.folder.refuse_taken()
        self.accelerator = make_accelerator(device, trackers, self.folder.path)
        self.data, self.objective = data, objective.to(self.device)
        self.generator = torch.Generator(self.device).manual_seed(self.settings.seed + self.accelerator.process_index)
        self.batches = Batches(
            data, self.settings, self.device, self.accelerator.process_index, self.accelerator.num_processes
        )
        self.step, self.seconds = 0, 0.0
        self.show_progress, self._tracked, self._new = show_progress, bool(trackers), not _resuming
        self.profile = Profile(self.device, profile)
        self._set_up(energy.to(self.device))

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        data: Dataset | None = None,
        energy: nn.Module | None = None,
        objective: Objective | None = None,
        steps: int | None = None,
        **options: Any,
    ) -> "Trainer":
        """Go on with the run in ``folder`` from its last full checkpoint, exactly as if it had not stopped.

        Args:
            folder: The run folder.
            data: The data, where the config does not say how to load it again.
            energy: The energy, where the config does not say how to make it again.
            objective: The objective, likewise.
            steps: A new number of steps in all.
            **options: ``device``, ``trackers``, ``show_progress`` and ``profile`` of the constructor.

        Raises:
            InputError: The folder holds no run, or the parts do not fit it.
        """
        run_folder = RunFolder(folder)
        config = run_folder.read_config()
        settings = settings_of(config if steps is None else {**config, "steps": steps})
        data = data or data_of(config)
        with seeded(settings.seed):
            energy = energy or energy_of(config, data.event_shape)
        trainer = cls(energy, objective or objective_of(config), data, settings, folder, _resuming=True, **options)
        if not same_data(run_folder.read_data_description(), trainer._description):
            raise InputError(
                f"the data of {folder} have changed since it was trained: its rows, shape or units are no longer those "
                f"of {run_folder.path / 'data.json'}; bring the data back, or start a new run"
            )
        trainer._restore()
        if steps is not None and trainer.accelerator.is_main_process:
            run_folder.write_config({**config, "steps": steps})
        return trainer

    @property
    def device(self) -> torch.device:
        """Where training happens."""
        return torch.device(self.accelerator.device)

    def fit(self) -> Run:
        """Train until ``settings.steps`` and return the run.

        Raises:
            DivergedError: The loss or the energies ran away; the message names the step and the last good checkpoint.
            KeyboardInterrupt: Interrupted; a checkpoint has been written.
            InputError: The folder already holds another run.
        """
        if self._new:
            self._create()
        if self._tracked:
            self.accelerator.init_trackers("adance", config={"run": str(self.folder.path)})
        began = time.monotonic() - self.seconds
        progress = TrainingProgress(
            self.step, self.settings.steps, self.show_progress and self.accelerator.is_main_process
        )
        with interrupt_flag() as interrupted, progress:
            while self.step < self.settings.steps:
                out = self._optimize(self.step + 1)
                self.step += 1
                self.seconds = time.monotonic() - began
                with self.profile.part("logging"):
                    self._look_after(out, progress)
                if interrupted.is_set():
                    self._stop_if_diverged()
                    self._checkpoint()
                    raise KeyboardInterrupt
        with self.profile.part("logging"):
            self._checkpoint()
            self._save_samples()
        if self._tracked:
            self.accelerator.end_training()
        if self.profile.on and self.accelerator.is_main_process:
            x = self.data.batch(torch.zeros(1, dtype=torch.int64)).to(self.device)
            print(self.profile.report(unwrap(self.energy), self.objective, x), file=sys.stderr)
        return self.run()

    def run(self) -> Run:
        """The run as it stands: a frozen copy of the model, of averaged weights where there are any."""
        averaged = self.average is not None
        buffers = {name: value for name, value in self.objective.state_dict().items() if name.endswith(BUFFER)}
        return Run(
            folder=self.folder,
            energy=freeze(self.average.energy if self.average else unwrap(self.energy)),
            kernel=self.objective.sampler,
            data=self._description,
            step=self.step,
            averaged=averaged,
            log_normalizer=_number(self.objective.log_normalizer()),
            buffer=next(iter(buffers.values()), None),
        )

    def _set_up(self, energy: nn.Module) -> None:
        # evenly spaced, since the rows of a file are often sorted
        rows = torch.linspace(0, len(self.data.train) - 1, min(PREPARE_ROWS, len(self.data.train))).long()
        sample = self.data.batch(rows).to(self.device)
        with torch.no_grad():
            try:
                shape = energy(sample[:2]).shape
            except (RuntimeError, TypeError, ValueError) as error:
                raise InputError(
                    f"the energy cannot take events of shape {self.data.event_shape} of {self.data.name}: "
                    f"{' '.join(str(error).split())}"
                ) from None
        n = len(sample[:2])
        if shape != (n,):
            raise InputError(f"the energy returned shape {tuple(shape)} for {n} events; it must return shape ({n},)")
        self._description = self.data.describe()
        if self.data.kind == "vector":
            noise = Gaussian.fitted(sample)
            self._description |= {"mean": noise.mean.tolist(), "std": noise.std.tolist()}
        fit_base = getattr(energy, "fit_base", None)
        if fit_base is not None:
            fit_base(sample)
        # first of all, since with many processes it brings all to the weights of the first
        self.energy = self.accelerator.prepare(energy)
        self.objective.prepare(self.energy, sample, self.settings.batch_size, self.generator)
        self.profile.watch_chains(self.objective)
        set_chains(self.objective, unwrap(self.energy), sample, self.settings)
        self.objective.start(unwrap(self.energy), sample, self.generator)
        self.average = WeightAverage(energy, self.settings.ema) if self.settings.ema > 0 else None
        self.optimizers = Optimizers(energy, self.objective, self.settings, self.accelerator)
        self.optimizer = self.optimizers.by_name["optimizer"]
        self.guard = DivergenceGuard(self.device, self.settings.energy_limit)
        self.look_every = 1 if self.device.type == "cpu" else 20

    def _optimize(self, step: int) -> LossOutput:
        with self.profile.part("data"):
            x = self.batches.batch(step, self.generator)
        with self.profile.part("forward/backward"):
            out = self.objective.loss(self.energy, x, self.generator)
            self.optimizers.zero_grad()
            self.accelerator.backward(out.value)
        self.profile.saw(out)
        self._average_objective_gradients()
        gradients = [p.grad for p in self.energy.parameters() if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        if self.settings.grad_clip is not None:
            nn.utils.clip_grads_with_norm_(self.energy.parameters(), self.settings.grad_clip, norm)
        everything = nn.utils.get_total_norm([norm, *self.optimizers.objective_gradients()])
        self.optimizers.step(step, self.guard.watch(out, everything, step))
        self.objective.after_step(self.energy, step)
        if self.average is not None:
            self.average.update(unwrap(self.energy), step)
        return out

    def _look_after(self, out: LossOutput, progress: TrainingProgress) -> None:
        settings, step = self.settings, self.step
        last = step == settings.steps
        at_checkpoint = step % settings.checkpoint_every == 0 or last
        if step % self.look_every == 0 or at_checkpoint:
            self._stop_if_diverged()
        progress.advance(step)
        if step % settings.log_every == 0 or last:
            self._log(out, progress)
        if at_checkpoint:
            self._checkpoint()
        if settings.sample_every and step % settings.sample_every == 0 and not last:
            self._save_samples()

    def _stop_if_diverged(self) -> None:
        bad = self.guard.diverged_at()
        if bad is not None:
            good = self.folder.checkpoint(self.folder.checkpoint_steps()[-1])
            raise DivergedError(
                f"training diverged at step {bad}: the loss, an energy or a gradient is not finite, or the mean "
                f"energies of data and noise differ by more than {self.settings.energy_limit:g}; "
                f"last good checkpoint: {good}"
            )

    def _log(self, out: LossOutput, progress: TrainingProgress) -> None:
        row = {name: float(value) for name, value in out.metrics.items()}
        row["energy_held_out"] = self._held_out_energy()
        row["learning_rate"] = learning_rate(self.settings, self.step)
        row = {"step": self.step, "seconds": round(self.seconds, 3), **row}
        if self.accelerator.is_main_process:
            self.folder.append_metrics(row)
        if self._tracked:
            self.accelerator.log(row, step=self.step)
        progress.report(self.step, row)

    @torch.no_grad()
    def _held_out_energy(self) -> float:
        rows = torch.arange(min(len(self.data.test), 4 * self.settings.batch_size))
        x = self.data.batch(rows, "test").to(self.device)
        with reading(self.energy):
            return float(evaluate(unwrap(self.energy), x).mean())

    def _save_samples(self) -> None:
        if self.accelerator.is_main_process and has_picture(self._description):
            run = self.run()
            n = 64 if self.data.kind == "image" else 1000
            with whole_file(self.folder.samples / f"{self.step:08d}.png") as aside:
                save_picture(run, run.sample(n, seed=self.settings.seed), aside, self.data)

    def _average_objective_gradients(self) -> None:
        if self.accelerator.num_processes > 1:
            for parameter in self.objective.parameters():
                if parameter.grad is not None:
                    parameter.grad = self.accelerator.reduce(parameter.grad, "mean")

    def _create(self) -> None:
        if self.accelerator.is_main_process:
            config = make_config(self.data, unwrap(self.energy), self.objective, self.settings)
            self.folder.create(config, self._description)
        self._new = False
        self._checkpoint()

    def _checkpoint(self) -> None:
        if not self.accelerator.is_main_process or self.step in self.folder.checkpoint_steps():
            return
        tensors: dict[str, dict[str, Tensor]] = {
            "energy": unwrap(self.energy).state_dict(),
            "objective": self.objective.state_dict(),
            **self.optimizers.tensors(),
            "random": {"generator": self.generator.get_state()},
        }
        if self.average is not None:
            tensors["average"] = self.average.energy.state_dict()
        path = self.folder.checkpoint(self.step)
        log_normalizer = _number(self.objective.log_normalizer())
        state = {"step": self.step, "seconds": self.seconds, "log_normalizer": log_normalizer}
        ckpt.save_checkpoint(path, tensors, state)
        ckpt.thin_out([self.folder.checkpoint(step) for step in self.folder.checkpoint_steps()])

    def _restore(self) -> None:
        if self.accelerator.is_main_process:
            self.folder.remove_parts()
        steps = [step for step in self.folder.checkpoint_steps() if ckpt.is_full(self.folder.checkpoint(step))]
        if not steps:
            self._checkpoint()
            return
        path = self.folder.checkpoint(steps[-1])
        state = ckpt.read_state(path)
        self.step, self.seconds = state["step"], state["seconds"]
        ckpt.load_weights(unwrap(self.energy), path / "energy.safetensors")
        ckpt.load_weights(self.objective, path / "objective.safetensors")
        for name, optimizer in self.optimizers.by_name.items():
            ckpt.load_optimizer(optimizer.optimizer, path / f"{name}.safetensors")
        self._restore_generator(path / "random.safetensors")
        if self.average is not None:
            ckpt.load_weights(self.average.energy, path / "average.safetensors")
        if self.settings.steps < self.step:
            raise InputError(f"{self.folder.path} has {self.step} steps already, more than steps={self.settings.steps}")
        if self.accelerator.is_main_process:
            self.folder.trim_metrics(self.step)

    def _restore_generator(self, path: Path) -> None:
        state = ckpt.load_tensors(path).get("generator")
        process = self.accelerator.process_index
        if process == 0 and state is not None and state.shape == self.generator.get_state().shape:
            self.generator.set_state(state)
            return
        if process == 0:
            warnings.warn("resumed on another kind of device: random numbers go on from a new seed", stacklevel=4)
        # the state is the first process's: the others must not draw the same noise
        self.generator.manual_seed(self.settings.seed + process + 1_000_003 * (self.step + 1))


def _number(value: Tensor | None) -> float | None:
    return None if value is None else float(value)
