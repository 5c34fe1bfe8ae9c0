"""Markov kernels, and the one function that drives any of them.

A kernel holds settings, never state: ``init`` makes the state of many chains from their positions and ``step`` moves
all of them once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from adance.configurable import Configurable
from adance.energies.energy import Energy, reading
from adance.errors import InputError


class StepInfo(NamedTuple):
    """What one step saw, each ``(B,)``: energy and gradient norm where it began, and whether its proposal was taken."""

    energy: Tensor
    gradient_norm: Tensor | None
    accepted: Tensor | None


class Kernel(Configurable, ABC):
    """A Markov kernel whose stationary law is ``exp(−E/temperature)``, exactly or as its step size goes to 0."""

    steps: int
    """Steps that a chain takes unless told otherwise."""

    gradients_at_init: int = 0
    """Energy gradients that ``init`` spends; every step spends one."""

    @property
    @abstractmethod
    def temperature(self) -> float:
        """T of the stationary law ``exp(−E/T)``."""

    @abstractmethod
    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> Any:
        """The state of chains at ``x`` ``(B, *event)``, of which ``state.x`` are the positions.

        ``step_size`` goes on from an adapted one; kernels that do not adapt ignore it.
        """

    @abstractmethod
    def step(self, energy: Energy, state: Any, generator: torch.Generator | None = None) -> tuple[Any, StepInfo]:
        """Move every chain once."""

    def adapt(self, state: Any, info: StepInfo) -> Any:
        """The state with its step size moved towards a target acceptance; here: unchanged."""
        return state


@dataclass(frozen=True)
class Chains:
    """Where chains ended, and their records.

    Attributes:
        x: Final positions ``(B, *event)``.
        energy: Mean energy over the chains before each step ``(steps,)``.
        gradient_norm: Mean ``‖∇E‖`` over the chains before each step ``(steps,)``; its mean is the thesis's v.
        acceptance: Share of accepted proposals at each step ``(steps,)``; of ones for unadjusted kernels.
        finite: Which chains ended at a finite position and met no energy that is NaN on their way ``(B,)``.
        step_size: The step size after adaptation, or ``None``.
        gradients: Energy gradients spent, all chains together.
    """

    x: Tensor
    energy: Tensor
    gradient_norm: Tensor
    acceptance: Tensor
    finite: Tensor
    step_size: Tensor | None
    gradients: int


def run_chains(
    kernel: Kernel,
    energy: Energy,
    x: Tensor,
    steps: int | None = None,
    *,
    generator: torch.Generator | None = None,
    adapt: int = 0,
    step_size: Tensor | None = None,
    callback: Callable[[int, Tensor], None] | None = None,
) -> Chains:
    """Run one chain from every row of ``x`` ``(B, *event)``; the energy is left exactly as it was.

    Args:
        kernel: The Markov kernel.
        energy: Any callable ``(B, *event) -> (B,)``.
        x: Starts; not altered, and never aliased by the result.
        steps: Number of steps; by default the kernel's own. With 0 the result is a copy of the starts.
        generator: Source of randomness, on the device of ``x``; by default torch's global one.
        adapt: During this many first steps the kernel adapts its step size, where it can.
        step_size: An adapted step size to go on from.
        callback: Called as ``callback(i, x)`` after step i (counted from 1).

    Raises:
        InputError: ``steps`` is negative, or the energy returns a wrong shape.
    """
    steps = kernel.steps if steps is None else steps
    if steps < 0:
        raise InputError(f"a chain cannot take {steps} steps; 0 or more")
    infos: list[StepInfo] = []
    if steps == 0:
        return _record(x.detach().clone(), infos, step_size, 0)
    with reading(energy), torch.no_grad():
        state = kernel.init(energy, x.detach().clone(), step_size)
        for i in range(1, steps + 1):
            state, info = kernel.step(energy, state, generator)
            infos.append(info)
            if i <= adapt:
                state = kernel.adapt(state, info)
            if callback is not None:
                callback(i, state.x)
        spent = len(x) * (steps + kernel.gradients_at_init)
        return _record(state.x, infos, getattr(state, "step_size", None), spent)


def _record(x: Tensor, infos: list[StepInfo], step_size: Tensor | None, gradients: int) -> Chains:
    def means(values: list[Tensor | None]) -> Tensor:
        known = [value.to(x.dtype) for value in values if value is not None]
        return torch.stack(known).nanmean(1) if known else x.new_empty(0)

    adjusted = any(info.accepted is not None for info in infos)
    finite = x.isfinite().flatten(1).all(1)
    if infos:
        finite &= ~torch.stack([info.energy for info in infos]).isnan().any(0)
    return Chains(
        x=x,
        energy=means([info.energy for info in infos]),
        gradient_norm=means([info.gradient_norm for info in infos]),
        acceptance=means([info.accepted for info in infos]) if adjusted else x.new_ones(len(infos)),
        finite=finite,
        step_size=step_size,
        gradients=gradients,
    )
