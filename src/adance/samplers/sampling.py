"""Drawing samples from a trained energy."""

from collections.abc import Callable

import torch
from torch import Tensor

from adance.energies.energy import Energy
from adance.samplers.chains import Chains, run_chains
from adance.samplers.kernel import Kernel

MOST_RUNS = 20
"""A chain for sampling is at most so many times as long as one run of a chain in training."""


def draw_samples(
    kernel: Kernel,
    energy: Energy,
    starts: Tensor,
    steps: int,
    generator: torch.Generator | None = None,
    callback: Callable[[int, Tensor], None] | None = None,
    compile: bool = False,
) -> Chains:
    """Run chains from ``starts`` ``(n, *event)`` for sampling rather than training.

    Adjusted kernels adapt their step size during the first half.

    Args:
        kernel: The kernel.
        energy: The energy.
        starts: Where the chains start.
        steps: Number of steps, see :func:`sampling_steps`.
        generator: Source of randomness.
        callback: Called as ``callback(i, x)`` after step i (counted from 1).
        compile: Compile them; not with a callback.
    """
    return run_chains(
        kernel, energy, starts, steps, generator=generator, adapt=steps // 2, callback=callback, compile=compile
    )


def sampling_steps(kernel: Kernel, training_runs: float | None = None) -> int:
    """How many steps a chain takes that is for sampling rather than training.

    Adjusted kernels converge to the model's law: they take twenty times as many as a run of a chain in training. Other
    chains are good samplers for as long as training has followed them: they take as many as training's own chains from
    noise, and twice the steps of one run where that is not known.

    Args:
        kernel: The kernel, of as many steps as one run in training.
        training_runs: How many runs most of training's chains had behind them since they began at noise, see
            :attr:`ChainStarts.runs`.
    """
    if kernel.exact:
        return MOST_RUNS * kernel.steps
    runs = 2.0 if training_runs is None else min(training_runs, MOST_RUNS)
    return round(runs * kernel.steps)
