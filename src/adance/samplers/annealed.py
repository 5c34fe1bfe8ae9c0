"""Annealing: a kernel whose step size, noise or temperature changes from step to step."""

import inspect
import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from adance.energies.energy import Energy
from adance.errors import InputError
from adance.samplers.kernel import ChainState, Kernel, StepInfo

Range = tuple[float, float]


class AnnealedState(NamedTuple):
    """The kernel's own state, and the steps taken."""

    inner: ChainState
    done: int

    @property
    def x(self) -> Tensor:
        """Positions ``(B, *event)``."""
        return self.inner.x

    @property
    def step_size(self) -> Tensor | None:
        """The kernel's step size, where it adapts one."""
        return getattr(self.inner, "step_size", None)


class Annealed(Kernel):
    """Any kernel, with settings that change from a first to a last value during its steps and then stay constant.

    Each range is a pair ``(first, last)``; the kernel must have the setting of that name. A kernel that adapts
    its step size continues to do so in warm-up unless its step size is scheduled.

    Args:
        kernel: The kernel.
        steps: Steps of the schedule, and by default of one chain.
        step_size: First and last step size.
        noise_std: First and last standard deviation of the noise, for kernels that have one.
        temperature: First and last temperature.
        shape: ``geometric``: settings change by the same factor at each step (both ends above 0). ``linear``: by the
            same amount.

    Raises:
        InputError: ``steps`` is below 1, ``shape`` unknown, a range does not fit the shape, no range is given, or the
            kernel lacks the setting.
    """

    def __init__(
        self,
        kernel: Kernel,
        steps: int = 100,
        step_size: Range | None = None,
        noise_std: Range | None = None,
        temperature: Range | None = None,
        shape: Literal["geometric", "linear"] = "geometric",
    ) -> None:
        if steps < 1:
            raise InputError(f"Annealed needs steps ≥ 1, got {steps=}")
        if shape not in ("geometric", "linear"):
            raise InputError(f"unknown shape {shape!r}: use geometric or linear")
        ranges = {"step_size": step_size, "noise_std": noise_std, "temperature": temperature}
        paths = {name: _path(ends, steps, shape) for name, ends in ranges.items() if ends is not None}
        if not paths:
            raise InputError("Annealed needs at least one of step_size, noise_std and temperature")
        for name in paths:
            if name not in inspect.signature(type(kernel)).parameters:
                raise InputError(f"{type(kernel).__name__} has no {name} to anneal")
        self.steps, self.step_sizes = steps, paths.get("step_size")
        self.kernels = [_with(kernel, {name: path[i] for name, path in paths.items()}) for i in range(steps)]
        self.temperature = self.kernels[-1].temperature
        self.exact = kernel.exact and temperature is None
        self.gradients_at_init, self.gradients_per_step = kernel.gradients_at_init, kernel.gradients_per_step

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> AnnealedState:
        """The state of chains at ``x`` ``(B, *event)``, at the first step of the schedule."""
        return AnnealedState(self.kernels[0].init(energy, x, step_size), 0)

    def step(
        self, energy: Energy, state: AnnealedState, generator: torch.Generator | None = None
    ) -> tuple[AnnealedState, StepInfo]:
        """Move every chain once, with the settings of this step."""
        i = min(state.done, len(self.kernels) - 1)
        inner = state.inner
        if self.step_sizes is not None and getattr(inner, "step_size", None) is not None:
            inner = inner._replace(step_size=torch.full_like(inner.step_size, self.step_sizes[i]))
        inner, info = self.kernels[i].step(energy, inner, generator)
        return AnnealedState(inner, state.done + 1), info

    def adapt(self, state: AnnealedState, info: StepInfo) -> AnnealedState:
        """Adapt as the kernel does."""
        return state._replace(inner=self.kernels[0].adapt(state.inner, info))


def _path(ends: Range, steps: int, shape: str) -> list[float]:
    first, last = ends
    if shape == "geometric" and not (first > 0 and last > 0):
        raise InputError(f"a geometric schedule needs both ends above 0, got {tuple(ends)}: use shape='linear' for 0")
    shares = [i / max(steps - 1, 1) for i in range(steps)]
    if shape == "geometric":
        return [math.exp((1 - share) * math.log(first) + share * math.log(last)) for share in shares]
    return [(1 - share) * first + share * last for share in shares]


def _with(kernel: Kernel, settings: dict[str, float]) -> Kernel:
    """A copy of the kernel with other ``settings``; noise and temperature replace each other."""
    args = kernel.init_args | settings
    for name, other in (("noise_std", "temperature"), ("temperature", "noise_std")):
        if name in settings and other not in settings and other in args:
            args[other] = None
    return type(kernel)(**args)
