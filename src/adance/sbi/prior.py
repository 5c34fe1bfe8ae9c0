"""A prior of parameters θ, in normal coordinates."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent

from adance.errors import InputError
from adance.sbi.normal_maps import FARTHEST, ProductMap, map_of

PriorLike = Distribution | Sequence[Distribution]
"""A distribution of the vector θ, or a sequence of independent distributions of its parts, in order."""


class Prior:
    """A prior, its map to normal coordinates, and its density.

    Args:
        distribution: A distribution of vectors from ``torch.distributions`` (or a subclass, as in the package
            ``sbi``), or a sequence of independent ones. A univariate distribution with the batch shape ``(d,)`` counts
            as d independent ones. Supported are uniform, normal and multivariate normal distributions, all others that
            have ``cdf`` and ``icdf``, and one-to-one transforms of these, such as ``LogNormal``.

    Raises:
        InputError: The distribution is not supported.
    """

    def __init__(self, distribution: PriorLike) -> None:
        parts = (
            list(distribution)
            if isinstance(distribution, Sequence)
            else list(getattr(distribution, "dists", [distribution]))
        )
        if not parts or not all(isinstance(part, Distribution) for part in parts):
            raise InputError(
                f"the prior must be a torch.distributions distribution or a sequence of them, got {distribution!r}"
            )
        self.distributions = [_as_vector(part) for part in parts]
        maps = [map_of(part) for part in self.distributions]
        self.map = maps[0] if len(maps) == 1 else ProductMap(maps)

    @property
    def size(self) -> int:
        """Number of parameters d."""
        return self.map.size

    def to_theta(self, u: Tensor) -> Tensor:
        """θ ``(N, d)`` of u ``(N, d)``."""
        return self.map.to_theta(u)

    def to_normal(self, theta: Tensor) -> Tensor:
        """u ``(N, d)`` of θ ``(N, d)``, float64 and at most 8 from 0.

        Raises:
            InputError: A row is outside the prior's support.
        """
        u = self._unchecked(theta)
        outside = u.isnan().any(1)
        if outside.any():
            row = int(outside.nonzero()[0])
            raise InputError(f"row {row} of theta is outside the prior's support: {theta[row].tolist()}")
        return u

    def log_prob(self, theta: Tensor) -> Tensor:
        """Log-densities ``(N,)`` of θ ``(N, d)``, −∞ outside the support."""
        inside = ~self._unchecked(theta).isnan().any(1)
        middle = self.to_theta(theta.new_zeros(1, self.size))
        safe = torch.where(inside[:, None], theta, middle)
        pieces = torch.split(safe, [distribution.event_shape[0] for distribution in self.distributions], 1)
        each = [distribution.log_prob(piece) for distribution, piece in zip(self.distributions, pieces, strict=True)]
        return torch.where(inside, torch.stack(each).sum(0), -torch.inf)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` samples ``(n, d)``, float32."""
        return self.to_theta(torch.randn(n, self.size, generator=generator))

    def _unchecked(self, theta: Tensor) -> Tensor:
        if theta.ndim != 2 or theta.shape[1] != self.size:
            raise InputError(f"theta must have shape (N, {self.size}) for this prior, got {tuple(theta.shape)}")
        return self.map.to_normal(theta).clamp(-FARTHEST, FARTHEST)


def _as_vector(distribution: Distribution) -> Distribution:
    if len(distribution.event_shape) == 1 and distribution.batch_shape == ():
        return distribution
    if distribution.event_shape == () and len(distribution.batch_shape) <= 1:
        return Independent(distribution.expand(distribution.batch_shape or (1,)), 1)
    raise InputError(
        f"the prior must be a distribution of one vector, got batch shape {tuple(distribution.batch_shape)} and event "
        f"shape {tuple(distribution.event_shape)}: use torch.distributions.Independent for independent parameters"
    )
