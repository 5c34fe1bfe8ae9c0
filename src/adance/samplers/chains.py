"""The one function that drives any Markov kernel."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from adance.energies.energy import Energy, check_events, eval_mode, outside_inference_mode
from adance.errors import InputError
from adance.samplers.compiled import run_blocks, warn_not_compiled
from adance.samplers.kernel import Kernel, SplitKernel, StepInfo


@dataclass(frozen=True)
class Chains:
    """The ends of chains, and statistics of their steps.

    Attributes:
        x: Final positions ``(B, *event)``.
        energy: Mean energy over the chains before each step ``(steps,)``.
        gradient_norm: Mean ``‖∇E‖`` over the chains before each step ``(steps,)``; its mean is the thesis's v. Empty
            for kernels without gradients.
        acceptance: Share of accepted proposals at each step ``(steps,)``; all ones for unadjusted kernels.
        finite: Which chains ended at a finite position and met no NaN energy on the way ``(B,)``.
        step_size: The step size after adaptation, or ``None``.
        gradients: Energy gradients spent, all chains together.
        positions: With ``record=True``: positions after every ``thin``-th step ``(steps // thin, B, *event)``.
        state: The kernel's last state; ``None`` after no steps.
    """

    x: Tensor
    energy: Tensor
    gradient_norm: Tensor
    acceptance: Tensor
    finite: Tensor
    step_size: Tensor | None
    gradients: int
    positions: Tensor | None = None
    state: Any = None


@outside_inference_mode()
def run_chains(
    kernel: Kernel,
    energy: Energy,
    x: Tensor,
    steps: int | None = None,
    *,
    generator: torch.Generator | None = None,
    adapt: int = 0,
    step_size: Tensor | None = None,
    record: bool = False,
    thin: int = 1,
    callback: Callable[[int, Tensor], None] | None = None,
    compile: bool = False,
) -> Chains:
    """Run one chain from every row of ``x`` ``(B, *event)``; the energy is left exactly as it was.

    Memory grows with the number of steps only by three numbers per step and, with ``record``, by the positions.

    Args:
        kernel: The Markov kernel.
        energy: Any callable ``(B, *event) -> (B,)``.
        x: Starting positions; not modified, and never aliased by the result.
        steps: Number of steps; by default the kernel's own. 0 returns a copy of the starts.
        generator: Source of randomness, on the device of ``x``; by default torch's global one.
        adapt: Number of first steps during which the kernel adapts its step size, if it can.
        step_size: An adapted step size to continue with.
        record: Keep positions along the way.
        thin: Keep positions after every ``thin``-th step; at least 1.
        callback: Called as ``callback(i, x)`` after step i, counted from 1.
        compile: Compile blocks of steps if the kernel is a :class:`SplitKernel`; other kernels warn and run without
            compilation. The random numbers are the same, and positions agree to rounding. Compilation takes about ten
            seconds, once for each kernel, structure of energy and shape of ``x``.

    Raises:
        InputError: ``steps`` is below 0, ``thin`` is below 1, events have no axis, or the energy returns a wrong
            shape.
    """
    steps = kernel.steps if steps is None else steps
    if steps < 0:
        raise InputError(f"steps={steps} is negative: use 0 or more")
    if thin < 1:
        raise InputError(f"thin={thin} is below 1: use the number of steps between recorded positions")
    check_events(x)
    x = x.detach().clone()
    recorder = _Recorder(x, steps, thin if record else 0)
    if steps == 0:
        return recorder.chains(x, step_size)
    with eval_mode(energy), torch.no_grad():
        first = kernel.init(energy, x) if step_size is None else kernel.init(energy, x, step_size)
        if compile and not isinstance(kernel, SplitKernel):
            warn_not_compiled(kernel, energy, "the kernel is not a SplitKernel")
        in_blocks = compile and isinstance(kernel, SplitKernel)
        walk: Callable[..., Iterator[tuple[Tensor, Any, StepInfo]]] = run_blocks if in_blocks else _walk
        state: Any = None
        for i, (x, last, info) in enumerate(walk(kernel, energy, first, steps, adapt, generator), 1):
            state = last
            recorder.add(i, info, x)
            if callback is not None:
                callback(i, x)
        spent = len(x) * (steps * kernel.gradients_per_step + kernel.gradients_at_init)
        return recorder.chains(state.x, getattr(state, "step_size", None), spent, state)


def _walk(
    kernel: Kernel, energy: Energy, state: Any, steps: int, adapt: int, generator: torch.Generator | None = None
) -> Iterator[tuple[Tensor, Any, StepInfo]]:
    for i in range(1, steps + 1):
        state, info = kernel.step(energy, state, generator)
        if i <= adapt:
            state = kernel.adapt(state, info)
        yield state.x, state, info


class _Recorder:
    """Collects one :class:`StepInfo` per step and reduces them a few at a time, so that memory stays bounded.

    Args:
        x: Starts ``(B, *event)``.
        steps: Steps to come.
        thin: Positions are kept after every ``thin``-th step; 0 keeps none.
    """

    CHUNK = 64

    def __init__(self, x: Tensor, steps: int, thin: int) -> None:
        self.thin = thin
        self.finite = x.new_ones(len(x), dtype=torch.bool)
        self.positions = x.new_empty((steps // thin, *x.shape)) if thin else None
        self._means = {name: x.new_empty(steps) for name in ("energy", "gradient_norm", "accepted")}
        self._known = dict.fromkeys(self._means, 0)
        self._pending: list[StepInfo] = []

    def add(self, i: int, info: StepInfo, x: Tensor) -> None:
        """Record step ``i`` (counted from 1), which ended at ``x``."""
        self._pending.append(info)
        if len(self._pending) == self.CHUNK:
            self._flush()
        if self.positions is not None and i % self.thin == 0:
            self.positions[i // self.thin - 1] = x

    def chains(self, x: Tensor, step_size: Tensor | None = None, gradients: int = 0, state: Any = None) -> Chains:
        """The ends ``x`` of the chains, with what was recorded."""
        if self._pending:
            self._flush()
        energy, gradient_norm, acceptance = (means[: self._known[name]] for name, means in self._means.items())
        acceptance = acceptance if len(acceptance) else torch.ones_like(energy)
        finite = self.finite & x.isfinite().flatten(1).all(1)
        return Chains(x, energy, gradient_norm, acceptance, finite, step_size, gradients, self.positions, state)

    def _flush(self) -> None:
        self.finite &= ~torch.stack([info.energy for info in self._pending]).isnan().any(0)
        for name, means in self._means.items():
            values = [getattr(info, name) for info in self._pending]
            if values[0] is not None:
                rows = slice(self._known[name], self._known[name] + len(values))
                means[rows] = torch.stack(values).to(means.dtype).nanmean(1)
                self._known[name] += len(values)
        self._pending.clear()
