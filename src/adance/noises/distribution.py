"""A ``torch.distributions.Distribution`` as a density with explicit randomness."""

import contextlib
import copy

import torch
from torch import Tensor
from torch.distributions import Distribution

from adance.randomness import drawing_from


class FromDistribution:
    """A ``torch.distributions.Distribution`` as a noise; its batch axes are part of the event.

    Samples come from the given generator. Values outside the support have the log-density −∞. Arguments are not checked
    at every call, since that would wait for the device.

    Args:
        distribution: The distribution, with its tensors on the device of training.
    """

    def __init__(self, distribution: Distribution) -> None:
        self.distribution = _unchecked(distribution)
        self.event_shape = distribution.batch_shape + distribution.event_shape

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, *event)``."""
        with drawing_from(generator):
            return self.distribution.sample((n,))

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
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
