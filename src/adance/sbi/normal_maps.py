"""Maps from standard normal u to parameters θ, so that chains never leave the support of the prior.

For a box, ``θ = low + (high − low)·Φ(u)`` with the standard normal distribution function Φ: θ is uniform if u is
standard normal, and every u maps into the box. Other distributions have such a map too, so that the base of every
posterior is standard normal.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal, TransformedDistribution, Uniform
from torch.distributions.transforms import ComposeTransform, Transform

from adance.errors import InputError

FARTHEST = 8.0
"""Values of u are at most this far from 0; a standard normal number is farther away with probability 1e-15."""


class NormalMap(ABC):
    """A one-to-one map from standard normal u ``(N, d)`` to θ ``(N, d)``, whose distribution is then the prior.

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
    """The uniform distribution on a box.

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
    """A normal distribution, ``θ = μ + L u``.

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
    """Independent distributions with distribution function F and quantile function F⁻¹, ``θ = F⁻¹(Φ(u))``.

    Args:
        distribution: The distributions, of batch shape ``(d,)``.
    """

    def __init__(self, distribution: Distribution) -> None:
        self.distribution = distribution
        self.bounded = torch.zeros(distribution.batch_shape, dtype=torch.bool)

    def to_theta(self, u: Tensor) -> Tensor:
        """θ, by way of float64: in float32, Φ is 1 from u = 5.5 on, where F⁻¹ is infinite or has the wrong sign."""
        share = torch.special.ndtr(u.double().clamp(-FARTHEST, FARTHEST))
        return self.distribution.icdf(share).to(u.dtype)

    def to_normal(self, theta: Tensor) -> Tensor:
        """u; NaN outside the support."""
        assert self.distribution.support is not None
        theta = theta.double()
        inside = self.distribution.support.check(theta)  # type: ignore[no-untyped-call]
        safe = torch.where(inside, theta, self.distribution.icdf(torch.full_like(theta, 0.5)))
        return torch.where(inside, _quantile(self.distribution.cdf(safe)), torch.nan)


class TransformedMap(NormalMap):
    """A one-to-one transform of another distribution, such as the exponential of a normal variable.

    Args:
        base: The map of that distribution.
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


def map_of(distribution: Distribution) -> NormalMap:
    """The map of a distribution of vectors.

    Raises:
        InputError: It is neither uniform, normal nor multivariate normal, lacks ``cdf`` or ``icdf``, and is not a
            one-to-one transform of a supported distribution.
    """
    if isinstance(distribution, Independent):
        return map_of(distribution.base_dist)
    if isinstance(distribution, Uniform):
        return BoxMap(distribution.low, distribution.high)
    if isinstance(distribution, Normal):
        return GaussianMap(distribution.loc, torch.diag(distribution.scale))
    if isinstance(distribution, MultivariateNormal):
        return GaussianMap(distribution.loc, distribution.scale_tril)
    if isinstance(distribution, TransformedDistribution):
        transform = ComposeTransform(distribution.transforms)
        before, after = (d.batch_shape + d.event_shape for d in (distribution.base_dist, distribution))
        if transform.bijective and before == after:
            found = map_of(distribution.base_dist)
            for part in distribution.transforms:  # one by one, since each has values that it cannot give
                found = TransformedMap(found, part)
            return found
    try:
        distribution.cdf(distribution.icdf(torch.full(distribution.batch_shape, 0.5)))
    except NotImplementedError:
        raise InputError(
            f"the prior {type(distribution).__name__} has no quantile function (icdf) in torch: use a uniform, normal, "
            "multivariate normal or log-normal one, a transform of these, or another that has cdf and icdf"
        ) from None
    return QuantileMap(distribution)


def _quantile(share: Tensor) -> Tensor:
    u: Tensor = torch.special.ndtri(share)
    return u.clamp(-FARTHEST, FARTHEST)
