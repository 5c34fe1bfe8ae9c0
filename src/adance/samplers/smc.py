"""Sequential Monte Carlo: chains follow a distribution as it changes, by Jarzynski weights (Carbone et al. 2023)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from adance.distributed import gather
from adance.samplers.buffer import ReplayBuffer
from adance.samplers.chains import run_chains
from adance.samplers.kernel import Kernel
from adance.samplers.resampling import finite_sample_share, longest_step
from adance.samplers.rows import where_rows

LogDensity = Callable[[Tensor], Tensor]

MIN_EFFECTIVE_SHARE = 0.25
"""Smallest effective share of the chains that one weighting may leave."""

BRIDGE_STEPS = 5
"""Number of steps of the chains between two weightings."""

SHORTEST_STEP = 0.01
"""Smallest part of the path that a weighting covers, even if it leaves fewer chains."""

HALVINGS = 20
"""Bisections in the search for a step."""

ROWS_AT_ONCE = 5000


class Moved(NamedTuple):
    """How chains reached their new distribution.

    Attributes:
        share: Effective share of the chains if they had been weighted in one step.
        gradients: Energy gradients spent, all chains together.
        step_size: The kernel's step size after adaptation.
        log_density: The new log-density of the chains ``(capacity,)``.
        copies: Whether each chain duplicates another one since the last resampling, ``(capacity,)``.
    """

    share: Tensor
    gradients: int
    step_size: Tensor | None
    log_density: Tensor
    copies: Tensor


@torch.no_grad()
def reweight_and_move(
    buffer: ReplayBuffer,
    before: LogDensity,
    after: LogDensity,
    kernel: Kernel,
    generator: torch.Generator | None = None,
    step_size: Tensor | None = None,
    known: Tensor | None = None,
) -> Moved:
    """Turn chains with the density ``before`` into chains with the density ``after``.

    Weights ``after(x)/before(x)`` do that exactly for any two densities, unless few chains keep most of the weight.
    Then the path is taken in parts: weights that leave a quarter of the chains, resampling, and some steps of the
    kernel under the intermediate density ``before^(1−t)·after^t``.

    Args:
        buffer: The chains, all of equal weight, before and after.
        before: Log-density ``(B, *event) -> (B,)`` of the chains, up to a constant.
        after: The new log-density, up to a constant.
        kernel: A kernel that leaves ``exp(−E/T)`` invariant for any E, with T above 0.
        generator: Source of randomness.
        step_size: As for :func:`~adance.samplers.run_chains`.
        known: Values of ``before`` at the chains ``(capacity,)``, if they are known.
    """
    done, gradients, share = 0.0, 0, None

    def keeps(step: float) -> bool:
        return bool(finite_sample_share(step * every_gain) >= MIN_EFFECTIVE_SHARE)

    def between(x: Tensor) -> Tensor:
        return -kernel.temperature * ((1 - done) * before(x) + done * after(x))

    old = log_densities(before, buffer.samples) if known is None else known
    while True:
        new = log_densities(after, buffer.samples)
        gain = new.double() - old.double()
        every_gain = gather(gain)
        step = longest_step(keeps, 1 - done, SHORTEST_STEP, HALVINGS)
        if share is None:
            share = finite_sample_share(every_gain)
        rows, copies = buffer.resample(step * gain, generator)
        done += step
        if done >= 1:
            return Moved(share, gradients, step_size, gather(new)[rows], copies)
        steps = min(BRIDGE_STEPS, kernel.steps)
        chains = run_chains(
            kernel, between, buffer.samples, steps, generator=generator, adapt=steps, step_size=step_size
        )
        buffer.samples.copy_(where_rows(chains.finite, chains.x, buffer.samples))
        gradients, step_size = gradients + chains.gradients, chains.step_size
        old = log_densities(before, buffer.samples)


def log_densities(density: LogDensity, x: Tensor) -> Tensor:
    """Log-densities ``(B,)`` of ``x`` ``(B, *event)``, computed for a limited number of rows at a time."""
    return torch.cat([density(part) for part in torch.split(x, ROWS_AT_ONCE)])
