"""A trained run: its energy and its sampler, for sampling and scoring."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from adance.data.dataset import Dataset
from adance.data.rows import AnyRows
from adance.data.transforms import Transform, transform_from_state
from adance.energies.analytic import Density, Gaussian, Uniform
from adance.energies.class_conditional import ClassConditional
from adance.energies.conditional import ConditionalEnergy, given, needs_condition, takes_condition
from adance.energies.energy import evaluate, outside_inference_mode
from adance.energies.fast import chain_copy
from adance.energies.inpainting import InpaintingEnergy
from adance.energies.tilted import Tilted
from adance.errors import InputError
from adance.randomness import check_seed
from adance.samplers.chains import run_chains
from adance.samplers.kernel import Kernel
from adance.samplers.mala import MALA
from adance.samplers.sampling import sampling_steps
from adance.training.config import data_of
from adance.training.doctor import Diagnosis, diagnose
from adance.training.hub import push
from adance.training.run_folder import RunFolder
from adance.training.settings import Compile
from adance.training.speed import decide_compile

BUFFER = "buffer.samples"
Start = Literal["noise", "buffer", "data"]


@dataclass(frozen=True, eq=False)
class Run:
    """A trained, frozen model, with all that is needed to sample from it and to score data.

    Attributes:
        folder: The run folder.
        energy: The energy, ``(B, *event) -> (B,)``, without gradients.
        kernel: The kernel of the chains in training, or ``None`` if there were none.
        data: Shape, kind and units of the data.
        step: The optimizer step of these weights.
        averaged: Whether these weights are the moving average.
        log_normalizer: Log Z, if training learned it.
        chain_runs: Mean number of runs that chains had taken since noise in training, if chains started from noise.
        buffer: The replay buffer of training ``(N, *event)``, if there was one.
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
        """The kernel of training; if it ran no chains, MALA at T = 1, whose step size adapts."""
        return self.kernel or MALA(steps=100)

    @property
    def sampling_steps(self) -> int:
        """Steps of a chain for sampling: as many as training's own chains took, see :func:`sampling_steps`."""
        return sampling_steps(self.sampler, self.chain_runs)

    @property
    def weights(self) -> str:
        """Which weights these are, in words."""
        return "moving average" if self.averaged else "last"

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one event."""
        return tuple(self.data["event_shape"])

    @property
    def transform(self) -> Transform:
        """The transform from the units of the data to those of the model."""
        return transform_from_state(self.data["transform"])

    @property
    def device(self) -> torch.device:
        """The device of the energy."""
        return next(self.energy.parameters(), torch.empty(0)).device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the energy's weights."""
        return next((weight.dtype for weight in self.energy.parameters() if weight.is_floating_point()), torch.float32)

    @outside_inference_mode()
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
        """Draw samples ``(n, *event)`` in the units of the model.

        Args:
            n: Number of samples, each the end of its own chain.
            steps: Steps of a chain; by default :attr:`sampling_steps`.
            start: Where chains start.
            seed: Seed of the chains.
            given: With ``kept``, for inpainting: events ``(n, *event)``, of which a part is kept.
            kept: Boolean mask that broadcasts against ``given``: true where ``given`` is kept.
            callback: Called as ``callback(i, x)`` after step i of the chains, counted from 1.
            adapt: First steps during which the step size adapts, if the kernel adapts it; by default half of them.
            compile: Whether to compile the chains, as in :class:`~adance.training.Settings`.

        Raises:
            InputError: ``n`` is not in [1, 2³¹) or ``seed`` not in [0, 2⁶³), there is no buffer to start from, the data
                cannot be loaded, or ``given`` and ``kept`` do not fit the events.
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
            raise InputError(
                "inpainting needs both given (the events) and kept (the mask of the values that stay fixed)"
            )
        completion = None
        if given is not None and kept is not None:
            completion = InpaintingEnergy(energy, _fitted(given, starts, "given"), _fitted(kept, starts, "kept").bool())
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
    def score(self, x: AnyRows, batch_size: int = 1000) -> Tensor:
        """The energies ``(N,)`` of ``x`` ``(N, *event)``, in the units of the model; lazy rows are read in batches.

        Rows may have any floating-point type.

        Raises:
            InputError: The energy needs a condition.
        """
        self.check_condition()
        parts = (x[first : first + batch_size] for first in range(0, max(1, len(x)), batch_size))
        return torch.cat([evaluate(self.energy, self._own_type(part)).cpu() for part in parts])

    def _own_type(self, x: Tensor) -> Tensor:
        """``x`` on the device and in the floating-point type of the energy."""
        return x.to(self.device, self.dtype if x.is_floating_point() else x.dtype)

    def log_density(self, energies: Tensor) -> Tensor | None:
        """Log-densities ``(N,)`` in the units of the data, from energies; ``None`` if the model is not normalized.

        A conditional model is not: its log Z depends on the condition.
        """
        conditional = isinstance(self.energy, ConditionalEnergy) or takes_condition(self.energy)
        if self.log_normalizer is None or conditional:
            return None
        return -energies - self.log_normalizer + self.transform.log_det

    def given(self, z: Tensor) -> "Run":
        """The run given the condition ``z``: ``(1, *condition)`` for all rows, or one condition for each row."""
        return replace(self, energy=given(self.energy, z))

    def check_condition(self) -> None:
        """Check that the energy can be computed without a condition.

        Raises:
            InputError: The energy needs a condition.
        """
        if needs_condition(self.energy):
            name = type(self.energy).__name__
            raise InputError(f"{name} needs a condition z: in Python, use adance.load(folder).given(z)")

    def of_class(self, label: int) -> "Run":
        """The run given one class, for class-conditional energies.

        Raises:
            InputError: The energy is not class-conditional, or the class does not exist.
        """
        if not isinstance(self.energy, ClassConditional):
            raise InputError(
                f"{self.folder.path} is not class-conditional: its energy is of class {type(self.energy).__name__}"
            )
        classes = self.energy.classes
        if not 0 <= label < classes:
            raise InputError(f"there is no class {label}; classes are 0 to {classes - 1}")
        trained = self.data.get("classes", [label])  # not in runs of earlier versions
        if label not in trained:
            shown = ", ".join(map(str, trained))
            raise InputError(
                f"no training row has class {label}, so the model learned nothing about it; use one of {shown:.200}"
            )
        return self.given(torch.tensor([label]))

    @property
    def config(self) -> dict[str, Any]:
        """All settings of the run, defaults included, as ``adance train --config`` reads them."""
        return self.folder.read_config()

    def diagnose(self) -> Diagnosis:
        """Find likely causes of poor learning in the metrics that training logged.

        The checks and what helps are described in docs/reading-a-run.md. Neither data nor weights are needed.
        """
        return diagnose(self.folder.read_metrics(), self.config)

    def reload_data(self) -> Dataset:
        """Load the training data again.

        Raises:
            InputError: The data were in memory, or can no longer be loaded.
        """
        return data_of(self.config)

    def push_to_hub(self, repository: str, *, private: bool = False, license: str = "unknown") -> str:
        """Upload the run to the Hugging Face Hub: config, metrics, the weights of this step and a model card.

        The repository is created if it does not exist; a run that is already in it is replaced. The training state is
        not uploaded. You must be logged in (``hf auth login``, or the environment variable ``HF_TOKEN``).

        Args:
            repository: ``owner/name``.
            private: Whether the repository is private, if it is created.
            license: The Hub's identifier of the license of the weights, such as ``mit``.

        Returns:
            The address of the uploaded run, ``hf://owner/name@commit``, for :func:`adance.load`.

        Raises:
            InputError: ``huggingface_hub`` is not installed, or the upload fails.
        """
        return push(self, repository, private=private, license=license)

    def starts(self, n: int, start: Start, generator: torch.Generator) -> Tensor:
        """Starts of chains ``(n, *event)``, on the device of the energy.

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
            raise InputError(f"start must be noise, buffer or data, got {start!r}")
        data = self.reload_data()
        rows = torch.randint(len(data.test), (n,), generator=torch.Generator().manual_seed(generator.initial_seed()))
        return data.batch(rows, "test").to(self.device)

    def _noise(self) -> Density:
        if isinstance(self.energy, Tilted):
            return self.energy.fitted_base
        if self.data["kind"] == "image":
            return Uniform(self.event_shape).to(self.device)
        return Gaussian(torch.tensor(self.data["mean"]), torch.tensor(self.data["std"])).to(self.device)


def check_number(n: int) -> None:
    """Check a number of samples.

    Raises:
        InputError: ``n`` is not in [1, 2³¹).
    """
    if not 1 <= n < 2**31:
        raise InputError(f"n must be at least 1 and less than 2**31, got {n}")


def _fitted(x: Tensor, starts: Tensor, name: str) -> Tensor:
    try:
        return x.to(starts.device).expand_as(starts)
    except RuntimeError:
        raise InputError(f"{name} has shape {tuple(x.shape)}, which does not fit {tuple(starts.shape)}") from None
