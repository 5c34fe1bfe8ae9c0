"""Chains that follow a law as it changes: sequential Monte Carlo with Jarzynski weights (Carbone et al. 2023)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from adance.energies.energy import evaluate, reading
from adance.energies.frozen import freeze, refresh
from adance.samplers.buffer import ReplayBuffer
from adance.samplers.chains import run_chains
from adance.samplers.kernel import Kernel
from adance.samplers.weights import effective_sample_share

LogDensity = Callable[[Tensor], Tensor]

LEAST_SHARE = 0.25
"""Effective share of the chains that one weighting may leave."""

BRIDGE_STEPS = 5
"""Steps of the chains between two weightings."""

LEAST_STEP = 0.01
"""Least part of the way that a weighting covers, whatever it leaves."""

ROWS_AT_ONCE = 5000


class Followed(NamedTuple):
    """How chains came to their new law.

    Attributes:
        share: Effective share of the chains, had they been weighted at once.
        gradients: Energy gradients spent on the way, all chains together.
        step_size: The kernel's, after adaptation.
    """

    share: Tensor
    gradients: int
    step_size: Tensor | None


@torch.no_grad()
def follow(
    buffer: ReplayBuffer,
    before: LogDensity,
    after: LogDensity,
    kernel: Kernel,
    generator: torch.Generator | None = None,
    step_size: Tensor | None = None,
) -> Followed:
    """Make chains of the law ``before`` chains of the law ``after``.

    Weights ``after(x)/before(x)`` do that exactly, for any two laws, but where they leave few chains that count. Then
    it is done in parts: with weights to the power of as much of the way as leaves a quarter of the chains, resampling,
    and some steps of the kernel under the law between, ``before^(1−t)·after^t``.

    Args:
        buffer: The chains, all of equal weight, before and after.
        before: Log-density ``(B, *event) -> (B,)`` of their law, up to a constant.
        after: Log-density of the law that they are to have, up to a constant.
        kernel: Leaves ``exp(−E/T)`` as it is for any E, T being its temperature, above 0.
        generator: Source of randomness.
        step_size: As for :func:`~adance.samplers.run_chains`.
    """
    way, gradients, share = 0.0, 0, None
    while True:
        gain = _on_all(buffer.samples, lambda x: after(x).double() - before(x).double())
        step = _longest_step(gain, 1 - way)
        if share is None:
            share = effective_share(gain)
        buffer.resample(step * gain, generator)
        way += step
        if way >= 1:
            return Followed(share, gradients, step_size)
        between = _between(before, after, way, kernel.temperature)
        steps = min(BRIDGE_STEPS, kernel.steps)
        chains = run_chains(
            kernel, between, buffer.samples, steps, generator=generator, adapt=steps, step_size=step_size
        )
        finite = chains.finite.view(-1, *[1] * (buffer.samples.ndim - 1))
        buffer.samples.copy_(torch.where(finite, chains.x, buffer.samples))
        gradients, step_size = gradients + chains.gradients, chains.step_size


class Follower(nn.Module):
    """Brings a buffer of chains from the law of a model as it was to that of the model as it is.

    Args:
        energy: The model, of which a copy is kept.
        start: Log-density of the law that the buffer is filled from.
    """

    share: Tensor
    started: Tensor

    def __init__(self, energy: nn.Module, start: LogDensity) -> None:
        super().__init__()
        self.followed, self.start = freeze(energy), start
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))
        self.register_buffer("share", torch.ones(()))

    def bring(
        self,
        buffer: ReplayBuffer,
        energy: nn.Module,
        kernel: Kernel,
        generator: torch.Generator | None = None,
        step_size: Tensor | None = None,
    ) -> Followed:
        """To the law ``exp(−E/T)`` of a frozen ``energy``; at first from the start's, later from the last one's."""
        before = _log_density(self.followed, kernel.temperature) if self.started else self.start
        with reading(energy), reading(self.followed):
            found = follow(buffer, before, _log_density(energy, kernel.temperature), kernel, generator, step_size)
        refresh(self.followed, energy)
        self.started.fill_(True)
        self.share.copy_(found.share)
        return found


def _log_density(energy: nn.Module, temperature: float) -> LogDensity:
    return lambda x: -evaluate(energy, x) / temperature


def effective_share(log_weights: Tensor) -> Tensor:
    """Effective sample size of weights ``exp(log_weights)`` ``(M,)`` as a share of M; those not finite count as 0."""
    log_weights = torch.where(log_weights.isfinite(), log_weights, -torch.inf)
    return effective_sample_share(log_weights).nan_to_num(0.0)


def _longest_step(gain: Tensor, rest: float) -> float:
    """The longest step of the ``rest`` of the way that leaves :data:`LEAST_SHARE` of the chains."""
    if effective_share(rest * gain) >= LEAST_SHARE:
        return rest
    low, high = 0.0, rest
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if effective_share(middle * gain) >= LEAST_SHARE else (low, middle)
    return min(rest, max(low, LEAST_STEP))


def _between(before: LogDensity, after: LogDensity, way: float, temperature: float) -> LogDensity:
    return lambda x: -temperature * ((1 - way) * before(x) + way * after(x))


def _on_all(x: Tensor, function: LogDensity) -> Tensor:
    return torch.cat([function(part) for part in torch.split(x, ROWS_AT_ONCE)])
