"""Blocks of a kernel's steps as one compiled program.

The random numbers of a block are drawn outside it, step by step as for an eager chain: both chains see the same
numbers. ``torch.compile`` keeps the programs; one program works for every energy of the same
structure, since weights are its inputs and never constants in it.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from adance.energies.energy import Energy, is_vector
from adance.samplers.kernel import SplitKernel, StepInfo
from adance.signals import raise_if_received

BLOCK_OF_VECTORS, BLOCK_OF_IMAGES = 10, 2
"""Maximum number of gradients in one program. More take longer to compile, and gain little if a step itself is long."""

PROGRAMS = 256
"""Maximum number of programs in one process."""

_refused: WeakKeyDictionary[Any, set[type]] = WeakKeyDictionary()


def run_blocks(
    kernel: SplitKernel,
    energy: Energy,
    state: Any,
    steps: int,
    adapt: int,
    generator: torch.Generator | None = None,
) -> Iterator[tuple[Tensor, Any, StepInfo]]:
    """Yields positions after each step, the state at the end of its block, and the step's :class:`StepInfo`.

    The first ``adapt`` steps adapt the step size.
    """
    adapt = min(adapt, steps)
    gradients = BLOCK_OF_VECTORS if is_vector(state.x.shape[1:]) else BLOCK_OF_IMAGES
    most = max(1, gradients // max(1, kernel.gradients_per_step))
    for length, adapting in ((adapt, True), (steps - adapt, False)):
        for block in block_lengths(length, most):
            drawn = [kernel.sample_randomness(state.x, generator) for _ in range(block)]
            args = kernel, energy, state, [torch.stack(of) for of in zip(*drawn, strict=True)], adapting
            state, positions, seen = _run_compiled(*args) or step_block(*args)
            for i in range(block):
                yield positions[i], state, StepInfo._make(None if field is None else field[i] for field in seen)


def block_lengths(steps: int, most: int) -> list[int]:
    """Lengths of blocks that add up to ``steps``: equal ones between ``most/2`` and ``most``, so one program is enough.

    If there are no such lengths, the last block is shorter.
    """
    most = min(most, steps)
    block = next((n for n in range(most, max(most // 2, 1) - 1, -1) if steps % n == 0), most)
    return [min(block, steps - done) for done in range(0, steps, block or 1)]


def step_block(
    kernel: SplitKernel, energy: Energy, state: Any, numbers: list[Tensor], adapting: bool
) -> tuple[Any, Tensor, StepInfo]:
    """Take one step for each of the ``numbers`` ``(steps, ...)``.

    Positions ``(steps, B, *event)`` and statistics ``(steps, B)`` of the steps are stacked.
    """
    positions, infos = [], []
    for drawn in zip(*numbers, strict=True):
        state, info = kernel.move(energy, state, drawn)
        if adapting:
            state = kernel.adapt(state, info)
        positions.append(state.x)
        infos.append(info)
    seen = StepInfo._make(None if of[0] is None else torch.stack(of) for of in zip(*infos, strict=True))
    return state, torch.stack(positions), seen


def warn_not_compiled(kernel: object, energy: Energy, reason: str) -> None:
    """Warn, once for each energy and kind of kernel, that chains run without compilation, and why."""
    kinds = _refused_kinds(energy)
    if type(kernel) not in kinds:
        kinds.add(type(kernel))
        # only the first paragraph of torch's message; the rest is advice to its developers
        reason = " ".join(reason.strip().partition("\n\n")[0].split())
        names = f"{type(kernel).__name__} on {type(energy).__name__}"
        warnings.warn(f"chains of {names} are not compiled: {reason:.300}", stacklevel=4)


def _refused_kinds(energy: Energy) -> set[type]:
    """Kinds of kernels whose chains on ``energy`` cannot be compiled."""
    try:
        return _refused.setdefault(energy, set())
    except TypeError:  # it cannot be hashed, or not be referred to weakly
        return _refused.setdefault(type(energy), set())


def _run_compiled(
    kernel: SplitKernel, energy: Energy, state: Any, numbers: list[Tensor], adapting: bool
) -> tuple[Any, Tensor, StepInfo] | None:
    """The result of the compiled program, or ``None`` if it cannot be compiled; warns the first time."""
    if type(kernel) in _refused_kinds(energy):
        return None
    from torch._dynamo import config

    on_cuda = state.x.is_cuda
    try:
        with config.patch(recompile_limit=PROGRAMS, accumulated_recompile_limit=PROGRAMS):
            moved = _compiled(on_cuda)(kernel, energy, state, numbers, adapting)
    except Exception as error:  # any error of the compiler; an error of the energy is raised again by the eager chain
        raise_if_received()  # which the compiler may have turned into an error of its own
        warn_not_compiled(kernel, energy, str(error) or type(error).__name__)
        return None
    return clone_tensors(moved) if on_cuda else moved


def clone_tensors(moved: Any) -> Any:
    """Copies of all tensors in ``moved``: the next replay of a CUDA graph writes where this one wrote."""
    return tree_map_only(Tensor, torch.clone, moved)


@cache
def _compiled(on_cuda: bool) -> Callable[..., tuple[Any, Tensor, StepInfo]]:
    return torch.compile(step_block, fullgraph=True, dynamic=False, mode="reduce-overhead" if on_cuda else None)
