"""Two-dimensional laws that can be drawn from and whose normalised density is known exactly."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from adance.data.curves2d import CURVES
from adance.data.toy import Toy, device_of


def _log_normal(z: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Log-density of a diagonal Gaussian, summed over the last axis, which has two entries."""
    return -0.5 * ((z - mean) / std).square().sum(-1) - std.log().sum() - math.log(2 * math.pi)


def _on_circle(radius: float, angles: Tensor) -> Tensor:
    return radius * torch.stack([angles.cos(), angles.sin()], -1)


@dataclass(frozen=True, eq=False)
class EightGaussians(Toy):
    """Eight equal isotropic Gaussians evenly spaced on a circle: radius 2.8, standard deviation 0.2."""

    radius: float = 2.8
    std: float = 0.2
    name: str = "8gaussians"
    extent: float = 4.0

    @property
    def modes(self) -> Tensor:  # type: ignore[override]
        """The eight means (8, 2)."""
        return _on_circle(self.radius, torch.arange(8) * (math.pi / 4))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws (n, 2)."""
        device = device_of(generator)
        which = torch.randint(8, (n,), generator=generator, device=device)
        noise = torch.randn(n, 2, generator=generator, device=device)
        return self.modes.to(device)[which] + self.std * noise

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (B,) of the mixture at `x` (B, 2)."""
        parts = _log_normal(x[:, None], self.modes.to(x), x.new_tensor([self.std, self.std]))
        return parts.logsumexp(1) - math.log(8)


@dataclass(frozen=True, eq=False)
class Pinwheel(Toy):
    """Five equal Gaussian arms, each turned by an angle that grows with the distance from the origin.

    Before turning, an arm has mean (2, 0) and standard deviations 0.6 (radial) and 0.2 (tangential). A point at
    distance r of arm k is then rotated by 2 pi k / 5 + 0.5 r. Such a rotation keeps areas, so the change of
    variables has Jacobian 1 and is undone by turning back.
    """

    radius: float = 2.0
    radial_std: float = 0.6
    tangential_std: float = 0.2
    twist: float = 0.5
    arms: int = 5
    name: str = "pinwheel"
    extent: float = 5.0

    @property
    def modes(self) -> Tensor:  # type: ignore[override]
        """The turned means of the arms (5, 2)."""
        return _on_circle(self.radius, self._bases() + self.twist * self.radius)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws (n, 2)."""
        device = device_of(generator)
        which = torch.randint(self.arms, (n,), generator=generator, device=device)
        arm = torch.randn(n, 2, generator=generator, device=device)
        arm = arm * self._std(arm) + self._mean(arm)
        return _turn(arm, self._bases().to(device)[which] + self.twist * torch.linalg.vector_norm(arm, dim=-1))

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (B,) of the turned mixture at `x` (B, 2)."""
        angles = self._bases().to(x) + self.twist * torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        straight = _turn(x[:, None], -angles)
        return _log_normal(straight, self._mean(x), self._std(x)).logsumexp(1) - math.log(self.arms)

    def _bases(self) -> Tensor:
        return torch.arange(self.arms) * (2 * math.pi / self.arms)

    def _mean(self, like: Tensor) -> Tensor:
        return like.new_tensor([self.radius, 0.0])

    def _std(self, like: Tensor) -> Tensor:
        return like.new_tensor([self.radial_std, self.tangential_std])


def _turn(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([cos * x[..., 0] - sin * x[..., 1], sin * x[..., 0] + cos * x[..., 1]], -1)


@dataclass(frozen=True, eq=False)
class Checkerboard(Toy):
    """Uniform on the eight dark squares, of side 2, of a 4 x 4 board that covers [-4, 4) x [-4, 4).

    The square with its lower left corner at (-4, -4) is dark. The density is 1/32 on dark squares and 0 elsewhere.
    """

    name: str = "checkerboard"
    extent: float = 4.0

    @property
    def modes(self) -> Tensor:  # type: ignore[override]
        """Centres of the dark squares (8, 2)."""
        cells = torch.cartesian_prod(torch.arange(4), torch.arange(4))
        return cells[cells.sum(1) % 2 == 0] * 2.0 - 3

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws (n, 2)."""
        device = device_of(generator)
        which = torch.randint(8, (n,), generator=generator, device=device)
        # Midpoints of a 2**-20 grid: torch.rand could round up onto a light square's edge.
        steps = torch.randint(2**20, (n, 2), generator=generator, device=device)
        return self.modes.to(device)[which] - 1 + (steps + 0.5) / 2**19

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (B,) at `x` (B, 2): -log 32 on dark squares, -inf elsewhere."""
        on_board = (x >= -4).all(1) & (x < 4).all(1)
        dark = (x / 2).floor().sum(1) % 2 == 0
        return torch.where(on_board & dark, -math.log(32), -math.inf).to(x)


TOYS: dict[str, Callable[[], Toy]] = {
    "8gaussians": EightGaussians,
    "pinwheel": Pinwheel,
    "checkerboard": Checkerboard,
} | CURVES
