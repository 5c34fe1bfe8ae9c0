"""A trained run: its energy, its sampler, and what to do with them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from adance.data.dataset import Dataset
from adance.data.transforms import Transform, transform_from_state
from adance.energies.analytic import Density, Gaussian, Uniform
from adance.energies.by_class import ClassMLP
from adance.energies.conditional import Completion, given, needs_condition
from adance.energies.energy import evaluate
from adance.energies.fast import chain_copy
from adance.energies.frozen import freeze
from adance.errors import InputError
from adance.randomness import check_seed, fork_rng
from adance.samplers.chains import run_chains
from adance.samplers.kernel import Kernel
from adance.samplers.mala import MALA
from adance.samplers.sampling import sampling_steps
from adance.training import checkpoint as ckpt
from adance.training.config import data_of, energy_of, kernel_of
from adance.training.devices import find_device
from adance.training.run_folder import RunFolder
from adance.training.settings import Compile
from adance.training.speed import decide_compile

BUFFER = "buffer.samples"
Start = Literal["noise", "buffer", "data"]


@dataclass(frozen=True, eq=False)
class Run:
    """A model that was trained, frozen, with all that is needed to sample from it and score with it.

    Attributes:
        folder: Where the run is.
        energy: The energy, ``(B, *event) -> (B,)``, without gradients.
        kernel: The kernel of the training's chains, or ``None`` where training had none.
        data: Shape, kind and units of the data.
        step: The optimiser step of these weights.
        averaged: Whether these are averaged weights.
        log_normalizer: Log Z, where training learned it.
        chain_runs: How many runs most of training's chains from noise had behind them, where there were any.
        buffer: Ends of the training's chains ``(N, *event)``, where there are any.
    """

    folder: RunFolder
    energy: nn.Module
    kernel: Kernel | None
    data: dict[str, Any]
    step: int
    averaged: bool
    log_normalizer: float | None = None
    chain_runs: float | None = None
    buffer: Tensor | None = None

    @property
    def sampler(self) -> Kernel:
        """The training's own kernel; where it had no chains, MALA at T = 1, whose step size adapts."""
        return self.kernel or MALA(steps=100)

    @property
    def sampling_steps(self) -> int:
        """Steps of a chain for sampling: as far as training followed its own, see :func:`sampling_steps`."""
        return sampling_steps(self.sampler, self.chain_runs)

    @property
    def weights(self) -> str:
        """Which weights these are, in words."""
        return "moving average" if self.averaged else "last"

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one event."""
        return tuple(self.data["event_shape"])

    @property
    def transform(self) -> Transform:
        """From the data's units to the model's."""
        return transform_from_state(self.data["transform"])

    @property
    def device(self) -> torch.device:
        """Where the energy is."""
        return next(self.energy.parameters(), torch.empty(0)).device

    def sample(
        self,
        n: int,
        *,
        steps: int | None = None,
        start: Start = "noise",
        seed: int = 0,
        given: Tensor | None = None,
        kept: Tensor | None = None,
        callback: Callable[[int, Tensor], None] | None = None,
        adapt: int | None = None,
        compile: Compile = False,
    ) -> Tensor:
        """Draw ``(n, *event)`` samples, in the model's units.

        Args:
            n: Number of samples, each the end of its own chain.
            steps: Steps of a chain; by default :attr:`sampling_steps`.
            start: Where chains start.
            seed: Seed of the chains.
            given: With ``kept``: events ``(n, *event)`` of which part is kept; the rest is filled in.
            kept: Boolean, broadcasting against ``given``: what is kept.
            callback: Called as ``callback(i, x)`` after step i of the chains (counted from 1).
            adapt: First steps during which the step size adapts, if the kernel adapts it; by default half of them.
            compile: Compile the chains: as for :class:`~adance.training.Settings`.

        Raises:
            InputError: There is no buffer to start from, the data cannot be loaded, or what is kept does not fit.
        """
        self.check_condition()
        check_number(n)
        check_seed(seed)
        generator = torch.Generator(self.device).manual_seed(seed)
        starts = self.starts(n, start, generator)
        steps = self.sampling_steps if steps is None else steps
        compiled = decide_compile(compile, self.sampler, self.energy, starts, steps, n)
        energy = chain_copy(self.energy, starts)
        if (given is None) != (kept is None):
            raise InputError("completion needs both: given, the events, and kept, what to keep of them")
        completion = None
        if given is not None and kept is not None:
            completion = Completion(energy, _fitted(given, starts, "given"), _fitted(kept, starts, "kept").bool())
        x = run_chains(
            self.sampler,
            completion or energy,
            starts,
            steps,
            generator=generator,
            adapt=steps // 2 if adapt is None else adapt,
            callback=callback,
            compile=compiled,
        ).x
        return x if completion is None else completion.complete(x)

    @torch.no_grad()
    def score(self, x: Tensor, batch_size: int = 1000) -> Tensor:
        """Energies ``(N,)`` of ``x`` ``(N, *event)`` in the model's units.

        Raises:
            InputError: The energy needs a condition.
        """
        self.check_condition()
        return torch.cat([evaluate(self.energy, part.to(self.device)).cpu() for part in torch.split(x, batch_size)])

    def log_density(self, energies: Tensor) -> Tensor | None:
        """Log-densities ``(N,)`` in the data's units, from energies; ``None`` where the model claims none."""
        if self.log_normalizer is None:
            return None
        return -energies - self.log_normalizer + self.transform.log_det

    def given(self, z: Tensor) -> "Run":
        """The run at the condition ``z``, one ``(1, *condition)`` for all rows or one for each row of every call."""
        return replace(self, energy=given(self.energy, z))

    def check_condition(self) -> None:
        """Check that the energy can be computed without a condition.

        Raises:
            InputError: It cannot.
        """
        if needs_condition(self.energy):
            name = type(self.energy).__name__
            raise InputError(f"{name} has no energy without a condition: use adance.load(folder).given(z) in Python")

    def of_class(self, label: int) -> "Run":
        """The run of one class, where the energy is class-conditional: samples and scores are of that class.

        Raises:
            InputError: The energy is not, or there is no such class.
        """
        if not isinstance(self.energy, ClassMLP):
            raise InputError(f"{self.folder.path} has no classes: its energy is a {type(self.energy).__name__}")
        classes = self.energy.classes
        if not 0 <= label < classes:
            raise InputError(f"there is no class {label}; they are 0 to {classes - 1}")
        return self.given(torch.tensor([label]))

    @property
    def config(self) -> dict[str, Any]:
        """Every setting of the run, with no default left open: what ``adance train --config`` reads."""
        return self.folder.read_config()

    def reload_data(self) -> Dataset:
        """The data that the model was trained on.

        Raises:
            InputError: The config does not say how to load them.
        """
        return data_of(self.config)

    def starts(self, n: int, start: Start, generator: torch.Generator) -> Tensor:
        """Starts ``(n, *event)`` of chains, on the energy's device.

        Raises:
            InputError: There is no buffer to start from, or the data cannot be loaded.
        """
        if start == "noise":
            return self._noise().sample(n, generator)
        if start == "buffer":
            if self.buffer is None:
                raise InputError(f"{self.folder.path} has no buffer of chains to start from; start from noise or data")
            rows = torch.randint(len(self.buffer), (n,), generator=generator, device=self.device)
            return self.buffer.to(self.device)[rows]
        if start != "data":
            raise InputError(f"chains start from noise, buffer or data, not from {start!r}")
        data = self.reload_data()
        rows = torch.randint(len(data.test), (n,), generator=torch.Generator().manual_seed(generator.initial_seed()))
        return data.batch(rows, "test").to(self.device)

    def _noise(self) -> Density:
        if self.data["kind"] == "image":
            return Uniform(self.event_shape).to(self.device)
        return Gaussian(torch.tensor(self.data["mean"]), torch.tensor(self.data["std"])).to(self.device)


def check_number(n: int) -> None:
    """Check that so many samples can be asked for.

    Raises:
        InputError: There are none, or more than 2³¹ − 1.
    """
    if not 1 <= n < 2**31:
        raise InputError(f"cannot draw {n} samples; at least 1 and less than 2**31")


def _fitted(x: Tensor, starts: Tensor, name: str) -> Tensor:
    try:
        return x.to(starts.device).expand_as(starts)
    except RuntimeError:
        raise InputError(f"{name} has shape {tuple(x.shape)}, which does not fit {tuple(starts.shape)}") from None


def load(
    folder: str | Path,
    *,
    weights: Literal["average", "last"] | None = None,
    step: int | None = None,
    device: str | torch.device = "cpu",
    energy: nn.Module | None = None,
) -> Run:
    """Open a run folder.

    Args:
        folder: The run folder.
        weights: ``average`` for the moving average, ``last`` for the weights themselves; by default the average if
            there is one.
        step: The checkpoint of this step; by default the last.
        device: Where the energy goes.
        energy: A fresh energy of the right architecture, where the config does not say how to make one.

    Raises:
        InputError: The folder holds no run, or not what was asked for.
    """
    run_folder, placed = RunFolder(folder), find_device(str(device))
    config, description = run_folder.read_config(), run_folder.read_data_description()
    steps = run_folder.checkpoint_steps()
    if not steps or (step is not None and step not in steps):
        there = ", ".join(map(str, steps)) or "none"
        raise InputError(f"{run_folder.path} has no checkpoint{'' if step is None else f' {step}'}; there are: {there}")
    path = run_folder.checkpoint(steps[-1] if step is None else step)
    average = path / "average.safetensors"
    if weights == "average" and not average.exists():
        raise InputError(f"{path} has no averaged weights; the run was trained with ema 0")
    averaged = average.exists() and weights != "last"
    if energy is None:
        with fork_rng(0):
            energy = energy_of(config, description["event_shape"])
    if averaged:
        energy = freeze(energy)
    ckpt.load_weights(energy, average if averaged else path / "energy.safetensors")
    tensors = ckpt.load_tensors(path / "objective.safetensors") if ckpt.is_full(path) else {}
    state = ckpt.read_state(path)
    return Run(
        folder=run_folder,
        energy=freeze(energy).to(placed),
        kernel=kernel_of(config, description["event_shape"], energy),
        data=description,
        step=state["step"],
        averaged=averaged,
        log_normalizer=state["log_normalizer"],
        chain_runs=state.get("chain_runs"),
        buffer=next((value for name, value in tensors.items() if name.endswith(BUFFER)), None),
    )
