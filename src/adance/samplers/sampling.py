"""Drawing samples from a trained energy."""

from collections.abc import Callable

import torch
from torch import Tensor

from adance.energies.energy import Energy
from adance.samplers.chains import Chains, run_chains
from adance.samplers.kernel import Kernel


def draw_samples(
    kernel: Kernel,
    energy: Energy,
    starts: Tensor,
    steps: int | None = None,
    generator: torch.Generator | None = None,
    callback: Callable[[int, Tensor], None] | None = None,
    compile: bool = False,
) -> Chains:
    """Run chains from ``starts`` ``(n, *event)`` for sampling rather than training.

    Short-run chains take twice the steps of training, since most training chains went on from earlier ends. Adjusted
    kernels take twenty times as many and adapt their step size during the first half.

    Args:
        kernel: The kernel.
        energy: The energy.
        starts: Where the chains start.
        steps: Number of steps instead.
        generator: Source of randomness.
        callback: Called as ``callback(i, x)`` after step i (counted from 1).
        compile: Compile them; not with a callback.
    """
    if steps is None:
        steps = sampling_steps(kernel)
    return run_chains(
        kernel, energy, starts, steps, generator=generator, adapt=steps // 2, callback=callback, compile=compile
    )


def sampling_steps(kernel: Kernel) -> int:
    """How many steps a chain takes that is for sampling rather than training."""
    return (20 if kernel.exact else 2) * kernel.steps
