"""Drawing samples from a trained energy."""

import torch
from torch import Tensor

from adance.energies.energy import Energy
from adance.samplers.kernel import Chains, Kernel, run_chains


def draw_samples(
    kernel: Kernel, energy: Energy, starts: Tensor, steps: int | None = None, generator: torch.Generator | None = None
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
    """
    steps = sampling_steps(kernel) if steps is None else steps
    return run_chains(kernel, energy, starts, steps, generator=generator, adapt=steps // 2)


def sampling_steps(kernel: Kernel) -> int:
    """Steps of a chain of :func:`draw_samples` unless told otherwise."""
    return (20 if kernel.exact else 2) * kernel.steps
