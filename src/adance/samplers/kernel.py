"""What a Markov kernel is.

A kernel holds settings, never state: ``init`` makes the state of many chains from their positions and ``step`` moves
all of them once.
"""

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from adance.configurable import Configurable
from adance.energies.energy import Energy
from adance.errors import InputError
from adance.numbers import check_count
from adance.signatures import accepts, parameters

K = TypeVar("K", bound="Kernel")

Range = tuple[str, Callable[[float], bool]]
NOT_NEGATIVE: Range = ("≥ 0", lambda value: value >= 0)
POSITIVE: Range = ("> 0", lambda value: value > 0)
AT_LEAST_ONE: Range = ("≥ 1", lambda value: value >= 1)
BELOW_ONE: Range = ("in [0, 1)", lambda value: 0 <= value < 1)

RANGES: dict[str, Range] = {
    "steps": NOT_NEGATIVE,
    "step_size": POSITIVE,
    "temperature": POSITIVE,
    "noise_std": NOT_NEGATIVE,
    "momentum": BELOW_ONE,
    "friction": POSITIVE,
    "leapfrog_steps": AT_LEAST_ONE,
    "jitter": BELOW_ONE,
    "target_acceptance": ("in (0, 1)", lambda value: 0 < value < 1),
    "adaptation": NOT_NEGATIVE,
    "updates": AT_LEAST_ONE,
}
"""Which values each setting of a kernel may have."""


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


class ChainState(NamedTuple):
    """The state of chains: their positions, and what else a kernel keeps of them; what it does not keep is ``None``.

    Attributes:
        x: Positions ``(B, *event)``.
        energy: Energies ``(B,)`` at the positions.
        gradient: Gradients ``(B, *event)`` of the energy at the positions.
        momentum: Momenta or velocities ``(B, *event)``.
        step_size: The step size, one number or one for each chain ``(B,)``.
        updates: How often the step size was adapted, or how many coordinates were drawn.
    """

    x: Tensor
    energy: Any = None
    gradient: Any = None
    momentum: Any = None
    step_size: Any = None
    updates: Any = None


Step = tuple[ChainState, StepInfo]


class Kernel(Configurable, ABC):
    """A Markov kernel whose stationary distribution is ``exp(−E/temperature)``, exactly or as its step size goes to 0.

    Its states are named tuples, by default :class:`ChainState`. ``x`` are the positions; other values that belong to a
    chain and must follow it when chains are exchanged are called ``energy``, ``gradient`` (both of the energy that
    ``init`` was given) or ``momentum``.
    """

    checks_types = True

    steps: int
    """Default number of steps of one chain."""

    temperature: float
    """T of the stationary distribution ``exp(−E/T)``."""

    exact: bool = False
    """Whether the stationary distribution is exact at any step size."""

    @property
    def keeps_target(self) -> bool:
        """Whether the kernel leaves ``exp(−E/T)`` invariant, so that chains can follow a distribution that changes."""
        return self.exact and self.temperature > 0

    gradients_at_init: int = 0
    """Energy gradients that ``init`` spends on each chain."""

    gradients_per_step: int = 1
    """Energy gradients that a step spends on each chain."""

    @abstractmethod
    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> Any:
        """The state of chains at ``x`` ``(B, *event)``, of which ``state.x`` are the positions.

        ``step_size``, one number or one for each chain ``(B,)``, is an adapted step size to continue with; kernels that
        do not adapt ignore it.
        """

    @abstractmethod
    def step(self, energy: Energy, state: Any, generator: torch.Generator | None = None) -> tuple[Any, StepInfo]:
        """Move every chain once."""

    def with_changes(self: K, changes: Mapping[str, Any]) -> K:
        """The same kernel with some arguments of its constructor changed.

        Raises:
            InputError: The constructor has no such argument, or the value has the wrong type or is rejected.
        """
        made_from = type(self)
        known = parameters(made_from)
        try:
            for name, value in changes.items():
                if name == "steps":
                    check_count(name, value, least=0)
                elif name in known and not accepts(known[name].hint, value):
                    wanted = inspect.formatannotation(known[name].hint)
                    raise InputError(f"{name} must be of type {wanted}, got {value!r}")
            return made_from(**{**self.init_args, **changes})
        except (InputError, TypeError) as error:
            takes = ", ".join(inspect.signature(made_from).parameters)
            raise InputError(
                f"sampler: {error}; the default sampler is {made_from.__name__}, which takes {takes}"
            ) from None

    def adapt(self, state: Any, info: StepInfo) -> Any:
        """The state with its step size moved towards a target acceptance; here: unchanged."""
        return state


class SplitKernel(Kernel):
    """A kernel that draws its random numbers apart from the move that uses them, so that moves can be compiled."""

    @abstractmethod
    def sample_randomness(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
        """The random numbers of one step of chains at ``x`` ``(B, *event)``."""

    @abstractmethod
    def move(self, energy: Energy, state: Any, numbers: tuple[Tensor, ...]) -> tuple[Any, StepInfo]:
        """Move every chain once with the ``numbers`` from :meth:`sample_randomness`; the state holds only tensors."""

    def step(self, energy: Energy, state: Any, generator: torch.Generator | None = None) -> tuple[Any, StepInfo]:
        """Move every chain once."""
        return self.move(energy, state, self.sample_randomness(state.x, generator))


def check_settings(kernel: Kernel, ranges: Mapping[str, Range] = RANGES, **settings: float | None) -> None:
    """Check that the settings of ``kernel`` are finite and in their ``ranges``, or ``None`` if its constructor says so.

    Raises:
        InputError: A setting is not.
    """
    known = parameters(type(kernel))
    for name, value in settings.items():
        wanted, holds = ranges[name]
        if value is None and name in known and accepts(known[name].hint, None):
            continue
        if value is None or not (math.isfinite(value) and holds(value)):
            raise InputError(f"{type(kernel).__name__} needs a finite {name} {wanted}, got {name}={value}")
