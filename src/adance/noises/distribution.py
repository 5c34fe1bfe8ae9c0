"""A ``torch.distributions.Distribution`` as a density with explicit randomness."""

import contextlib
import copy

import torch
from torch import Tensor
from torch.distributions import Distribution

from adance.randomness import drawing_from


class FromDistribution:
    """What ``distribution`` says, its batch axes taken as part of the event.

    Draws come from the generator that is given; values outside the support have the log-density −∞, and no argument
    is checked at every call, which would wait for the device.

    Args:
        distribution: Where its tensors are, draws are made; it must be the device of training.
    """

    def __init__(self, distribution: Distribution) -> None:
        self.distribution = _unchecked(distribution)
        self.event_shape = distribution.batch_shape + distribution.event_shape

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent draws ``(n, *event)``."""
        with drawing_from(generator):
            return self.distribution.sample((n,))

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
        values: Tensor = self.distribution.log_prob(x)
        support = None
        with contextlib.suppress(NotImplementedError):
            support = self.distribution.support
        if support is not None:
            values = torch.where(support.check(x), values, -torch.inf)  # type: ignore[no-untyped-call]
        return values.flatten(1).sum(1) if values.ndim > 1 else values


def _unchecked(distribution: Distribution) -> Distribution:
    distribution = copy.copy(distribution)
    distribution._validate_args = False
    for name, value in vars(distribution).items():
        if isinstance(value, Distribution):
            setattr(distribution, name, _unchecked(value))
    return distribution
