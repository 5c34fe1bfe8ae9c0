"""Priors in normal coordinates: θ as a function of standard normal u, so that walls are never reached.

For a box, ``θ = low + (high − low)·Φ(u)`` with the standard normal distribution function Φ: the uniform law of θ is the
standard normal law of u, and every u is inside. The other laws have such a map too, so that the base of every
posterior is a standard normal law.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import (
    Distribution,
    Independent,
    MultivariateNormal,
    Normal,
    TransformedDistribution,
    Uniform,
)
from torch.distributions.transforms import ComposeTransform, Transform

from adance.errors import InputError

PriorLike = Distribution | Sequence[Distribution]
"""One law of the vector θ, or independent laws of its parts in order."""

FARTHEST = 8.0
"""Values of u are at most this far from 0; a standard normal number is farther with probability 1e-15."""


class NormalMap(ABC):
    """A one-to-one map from standard normal u ``(N, d)`` to θ ``(N, d)``, whose law is then the prior.

    Attributes:
        bounded: Which coordinates of θ have two finite bounds ``(d,)``.
    """

    bounded: Tensor

    @property
    def size(self) -> int:
        """d."""
        return len(self.bounded)

    @abstractmethod
    def to_theta(self, u: Tensor) -> Tensor:
        """θ ``(N, d)`` of u ``(N, d)``."""

    @abstractmethod
    def to_normal(self, theta: Tensor) -> Tensor:
        """u ``(N, d)`` of θ ``(N, d)``, float64; not finite outside the support."""


class BoxMap(NormalMap):
    """The uniform law on a box.

    Args:
        low: Lower bounds ``(d,)``.
        high: Upper bounds ``(d,)``.
    """

    def __init__(self, low: Tensor, high: Tensor) -> None:
        self.low, self.high = low, high
        self.bounded = torch.ones(low.shape, dtype=torch.bool)

    def to_theta(self, u: Tensor) -> Tensor:
        """θ in the box, its upper bound excluded."""
        low, high = self.low.to(u), self.high.to(u)
        theta: Tensor = low + (high - low) * torch.special.ndtr(u)
        return theta.clamp(low, torch.nextafter(high, low))

    def to_normal(self, theta: Tensor) -> Tensor:
        """u; NaN outside the box."""
        theta, low, high = theta.double(), self.low.double(), self.high.double()
        share = (theta - low) / (high - low)
        return torch.where((share >= 0) & (share <= 1), _quantile(share), torch.nan)


class GaussianMap(NormalMap):
    """A normal law, ``θ = μ + L u``.

    Args:
        mean: μ ``(d,)``.
        root: L ``(d, d)``, lower triangular.
    """

    def __init__(self, mean: Tensor, root: Tensor) -> None:
        self.mean, self.root = mean, root
        self.bounded = torch.zeros(mean.shape, dtype=torch.bool)

    def to_theta(self, u: Tensor) -> Tensor:
        """θ."""
        return self.mean.to(u) + u @ self.root.to(u).T

    def to_normal(self, theta: Tensor) -> Tensor:
        """u."""
        centered = theta.double() - self.mean.double()
        u: Tensor = torch.linalg.solve_triangular(self.root.double(), centered.T, upper=False)
        return u.T


class QuantileMap(NormalMap):
    """Independent laws with a distribution function F and its inverse, ``θ = F⁻¹(Φ(u))``.

    Args:
        law: The laws, of batch shape ``(d,)``.
    """

    def __init__(self, law: Distribution) -> None:
        self.law = law
        self.bounded = torch.zeros(law.batch_shape, dtype=torch.bool)

    def to_theta(self, u: Tensor) -> Tensor:
        """θ."""
        return self.law.icdf(torch.special.ndtr(u))

    def to_normal(self, theta: Tensor) -> Tensor:
        """u; NaN outside the support."""
        assert self.law.support is not None
        inside = self.law.support.check(theta)  # type: ignore[no-untyped-call]
        safe = torch.where(inside, theta, self.law.icdf(torch.full_like(theta, 0.5)))
        return torch.where(inside, _quantile(self.law.cdf(safe).double()), torch.nan)


class TransformedMap(NormalMap):
    """A one-to-one transform of another law, such as the exponential of a normal one.

    Args:
        base: The map of that law.
        transform: From its values to θ.
    """

    def __init__(self, base: NormalMap, transform: Transform) -> None:
        self.base, self.transform = base, transform
        self.bounded = base.bounded

    def to_theta(self, u: Tensor) -> Tensor:
        """θ."""
        theta: Tensor = self.transform(self.base.to_theta(u))
        return theta

    def to_normal(self, theta: Tensor) -> Tensor:
        """u; NaN outside the support."""
        inside = self.transform.codomain.check(theta)  # type: ignore[no-untyped-call]
        inside = inside if inside.ndim == theta.ndim else inside[:, None].expand_as(theta)
        middle = self.to_theta(theta.new_zeros(1, self.size)).expand_as(theta)
        base = self.base.to_normal(self.transform.inv(torch.where(inside, theta, middle).double()))
        return torch.where(inside, base, torch.nan)


class ProductMap(NormalMap):
    """Independent parts of θ, in order.

    Args:
        parts: The maps of the parts.
    """

    def __init__(self, parts: Sequence[NormalMap]) -> None:
        self.parts = list(parts)
        self.bounded = torch.cat([part.bounded for part in parts])

    def to_theta(self, u: Tensor) -> Tensor:
        """θ."""
        pieces = torch.split(u, [part.size for part in self.parts], 1)
        return torch.cat([part.to_theta(piece) for part, piece in zip(self.parts, pieces, strict=True)], 1)

    def to_normal(self, theta: Tensor) -> Tensor:
        """u."""
        pieces = torch.split(theta, [part.size for part in self.parts], 1)
        return torch.cat([part.to_normal(piece) for part, piece in zip(self.parts, pieces, strict=True)], 1)


class Prior:
    """A prior, its map to normal coordinates, and its density.

    Args:
        law: A law of vectors from ``torch.distributions`` (or a subclass, as the package ``sbi`` has them), or a
            sequence of independent laws. Laws of numbers with a batch shape ``(d,)`` are d independent ones. Known are
            uniform, normal and multivariate normal laws, all others that have ``cdf`` and ``icdf``, and one-to-one
            transforms of these, such as ``LogNormal``.

    Raises:
        InputError: The law is none of these.
    """

    def __init__(self, law: PriorLike) -> None:
        parts = list(law) if isinstance(law, Sequence) else list(getattr(law, "dists", [law]))
        if not parts or not all(isinstance(part, Distribution) for part in parts):
            raise InputError(f"the prior must be a torch.distributions distribution or a sequence of them, got {law!r}")
        self.laws = [_as_vector_law(part) for part in parts]
        maps = [_map_of(part) for part in self.laws]
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
        pieces = torch.split(safe, [law.event_shape[0] for law in self.laws], 1)
        each = [law.log_prob(piece) for law, piece in zip(self.laws, pieces, strict=True)]
        return torch.where(inside, torch.stack(each).sum(0), -torch.inf)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` samples ``(n, d)``, float32."""
        return self.to_theta(torch.randn(n, self.size, generator=generator))

    def _unchecked(self, theta: Tensor) -> Tensor:
        if theta.ndim != 2 or theta.shape[1] != self.size:
            raise InputError(f"theta must have shape (N, {self.size}) for this prior, got {tuple(theta.shape)}")
        return self.map.to_normal(theta).clamp(-FARTHEST, FARTHEST)


def _quantile(share: Tensor) -> Tensor:
    u: Tensor = torch.special.ndtri(share)
    return u.clamp(-FARTHEST, FARTHEST)


def _as_vector_law(law: Distribution) -> Distribution:
    if len(law.event_shape) == 1 and law.batch_shape == ():
        return law
    if law.event_shape == () and len(law.batch_shape) <= 1:
        return Independent(law.expand(law.batch_shape or (1,)), 1)
    raise InputError(
        f"the prior must be a law of one vector, got batch shape {tuple(law.batch_shape)} and event shape "
        f"{tuple(law.event_shape)}: use torch.distributions.Independent for independent parameters"
    )


def _map_of(law: Distribution) -> NormalMap:
    if isinstance(law, Independent):
        return _map_of(law.base_dist)
    if isinstance(law, Uniform):
        return BoxMap(law.low, law.high)
    if isinstance(law, Normal):
        return GaussianMap(law.loc, torch.diag(law.scale))
    if isinstance(law, MultivariateNormal):
        return GaussianMap(law.loc, law.scale_tril)
    if isinstance(law, TransformedDistribution):
        transform = ComposeTransform(law.transforms)
        if not transform.bijective:
            raise InputError(f"the transform of the prior {type(law).__name__} is not one-to-one")
        return TransformedMap(_map_of(law.base_dist), transform)
    try:
        law.cdf(law.icdf(torch.full(law.batch_shape, 0.5)))
    except NotImplementedError:
        raise InputError(
            f"the prior {type(law).__name__} has no quantile function (icdf) in torch: use a uniform, normal, "
            "multivariate normal or log-normal one, a transform of these, or another that has cdf and icdf"
        ) from None
    return QuantileMap(law)
