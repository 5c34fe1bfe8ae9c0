"""The state that training changes: saved to a checkpoint, restored from it, and turned into a run."""

import logging
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from adance.distributed import rank, world_size
from adance.energies.frozen import freeze
from adance.objectives.objective import ChainPlan, Objective
from adance.samplers.kernel import Kernel
from adance.samplers.pool import Pool
from adance.training import checkpoint as ckpt
from adance.training.ema import WeightAverage
from adance.training.guard import DivergenceGuard
from adance.training.optimizers import Optimizers
from adance.training.rank_state import GENERATOR, own_state, processes_of, states_of_others
from adance.training.run import BUFFER, Run
from adance.training.run_folder import RunFolder

log = logging.getLogger("adance")


@dataclass(eq=False)
class TrainingState:
    """All that is needed to resume training exactly; the parts are those of the trainer, not copies.

    Attributes:
        energy: The energy, not wrapped by accelerate.
        objective: The objective.
        plan: Its chains, if it runs any.
        kernel: The kernel for sampling, if the objective runs chains.
        optimizers: The optimizers.
        average: The moving average of the weights, if there is one.
        generator: Source of randomness.
        guard: Detects divergence.
        step: Optimizer steps done.
        seconds: Seconds that they took.
        saved: The step of the last checkpoint, if there is one.
    """

    energy: nn.Module
    objective: Objective
    plan: ChainPlan | None
    kernel: Kernel | None
    optimizers: Optimizers
    average: WeightAverage | None
    generator: torch.Generator
    guard: DivergenceGuard
    step: int = 0
    seconds: float = 0.0
    saved: int | None = None

    def log_normalizer(self) -> float | None:
        """Log Z if the objective learns it, else ``None``."""
        value = self.objective.log_normalizer()
        return None if value is None else float(value)

    @property
    def chain_runs(self) -> float | None:
        """Mean number of runs of the chains since they started at noise, if there are such chains."""
        return None if self.plan is None else self.plan.runs

    def as_run(self, folder: RunFolder, data: dict[str, Any]) -> Run:
        """The run at this step: a frozen copy of the model, with averaged weights if there are any.

        Args:
            folder: The run folder.
            data: The description of the data.
        """
        buffers = {name: value for name, value in self.objective.state_dict().items() if name.endswith(BUFFER)}
        return Run(
            folder=folder,
            energy=freeze(self.energy if self.average is None else self.average.energy),
            kernel=self.kernel,
            data=data,
            step=self.step,
            averaged=self.average is not None,
            log_normalizer=self.log_normalizer(),
            chain_runs=self.chain_runs,
            buffer=next((buffer.clone() for buffer in buffers.values()), None),
        )

    def save(self, folder: RunFolder) -> None:
        """Write the checkpoint of this step, unless it exists, and keep only the weights of older ones.

        All processes must call it; the first one writes.
        """
        if self.saved == self.step:
            return
        self.saved = self.step
        others = states_of_others(self.objective, self.generator)
        if rank() > 0 or self.step in folder.checkpoint_steps():
            return
        tensors: dict[str, dict[str, Tensor]] = {
            "energy": self.energy.state_dict(),
            "objective": self.objective.state_dict(),
            **self.optimizers.tensors(),
            "random": {GENERATOR: self.generator.get_state()},
        }
        if others:
            tensors["ranks"] = others
        if self.average is not None:
            tensors["average"] = self.average.energy.state_dict()
        numbers = {
            "step": self.step,
            "seconds": self.seconds,
            "log_normalizer": self.log_normalizer(),
            "chain_runs": self.chain_runs,
            "scales": None if self.guard.scales is None else self.guard.scales.tolist(),
        }
        ckpt.save_checkpoint(folder.checkpoint(self.step), tensors, numbers)
        log.debug("wrote %s", folder.checkpoint(self.step))
        ckpt.thin_out([folder.checkpoint(step) for step in folder.checkpoint_steps()])

    def restore(self, folder: RunFolder, seed: int) -> bool:
        """Restore the last full checkpoint; returns whether there is one.

        Args:
            folder: The run folder.
            seed: The run's seed.

        Raises:
            InputError: The checkpoint is broken or does not fit the model.
        """
        steps = [step for step in folder.checkpoint_steps() if ckpt.is_full(folder.checkpoint(step))]
        if not steps:
            return False
        path = folder.checkpoint(steps[-1])
        numbers = ckpt.read_state(path)
        self.step, self.seconds, self.saved = numbers["step"], numbers["seconds"], numbers["step"]
        if numbers["scales"] is not None:
            self.guard.scales = torch.tensor(numbers["scales"], dtype=torch.float64, device=self.guard.first_bad.device)
        ckpt.load_weights(self.energy, path / "energy.safetensors")
        others = ckpt.load_tensors(path / "ranks.safetensors") if (path / "ranks.safetensors").exists() else {}
        self._restore_generator(path, others, seed)
        self._restore_objective(path / "objective.safetensors", others)
        for name, optimizer in self.optimizers.by_name.items():
            file = path / f"{name}.safetensors"
            optimizer.load(ckpt.load_tensors(file), file)
        if self.average is not None:
            ckpt.load_weights(self.average.energy, path / "average.safetensors")
        return True

    def _restore_objective(self, path: Path, others: dict[str, Tensor]) -> None:
        own = own_state(self.objective, ckpt.load_tensors(path), others)
        ckpt.load_weights(self.objective, path, own)
        before = processes_of(others)
        if before == world_size():
            return
        for module in self.objective.modules():
            if isinstance(module, Pool):
                module.reshuffle(self.generator)
        if rank() == 0:
            warnings.warn(
                f"{path.parent} was written by {before} process{'es' if before > 1 else ''}, and training continues in "
                f"{world_size()}: the chains are redistributed, and the number of rows in a step changes with the "
                "number of processes",
                stacklevel=5,
            )

    def _restore_generator(self, path: Path, others: dict[str, Tensor], seed: int) -> None:
        first, process = ckpt.load_tensors(path / "random.safetensors"), rank()
        state = first.get(GENERATOR) if process == 0 else others.get(f"{process}.{GENERATOR}")
        if state is not None and state.shape == self.generator.get_state().shape:
            self.generator.set_state(state)
            return
        if process < processes_of(others):
            warnings.warn("resumed on another type of device: random numbers continue from a new seed", stacklevel=5)
        self.generator.manual_seed(seed + process + 1_000_003 * (self.step + 1))
