"""Densities in the plane: noisy curves, a pinwheel, a checkerboard; energies ``−log p`` with exact samples."""

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from adance.energies.analytic import ExactDensity

_NODES_PER_PANEL = 6
_CHUNK = 500_000


class NoisyCurves(ExactDensity):
    """Points on M equally likely curves, plus isotropic Gaussian noise.

    The density is the integral of the Gaussian along the curves. Gauss-Legendre quadrature on panels no longer than one
    and a half noise widths gives its logarithm to better than 1e-4 wherever the density has mass.

    Args:
        curves: Maps u ``(n,)`` in [0, 1], drawn uniformly, to the points ``(M, n, 2)`` of all M curves.
        std: Standard deviation of the noise in each coordinate.
    """

    def __init__(self, curves: Callable[[Tensor], Tensor], std: float) -> None:
        super().__init__(torch.zeros(2))
        self.curves, self.std = curves, std

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, 2)``."""
        points = self.curves(self._uniform(n, generator))
        which = torch.randint(len(points), (n,), generator=generator, device=points.device)
        rows = torch.arange(n, device=points.device)
        return points[which, rows] + self.std * self._normal(n, generator)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, 2)``, by quadrature along the curves."""
        nodes, log_weights = (part.to(x) for part in self._quadrature)
        rows = max(1, _CHUNK // len(nodes))
        constant = math.log(2 * math.pi * self.std**2)
        squares = ((part[:, None] - nodes).square().sum(2) for part in torch.split(x, rows))
        return torch.cat([(log_weights - each / (2 * self.std**2)).logsumexp(1) for each in squares]) - constant

    @cached_property
    def _quadrature(self) -> tuple[Tensor, Tensor]:
        """Nodes ``(Q, 2)`` and the logarithms ``(Q,)`` of their probabilities."""
        path = self.curves(torch.linspace(0, 1, 2001, dtype=torch.float64))
        speed = (path.diff(dim=1) * 2000).norm(dim=-1).max().item()
        panels = math.ceil(speed / (1.5 * self.std))
        abscissae, weights = (torch.from_numpy(a) for a in np.polynomial.legendre.leggauss(_NODES_PER_PANEL))
        u = ((abscissae + 1) / 2 + torch.arange(panels)[:, None]).flatten() / panels
        points = self.curves(u)
        log_weights = (weights / (2 * panels * len(points))).log().repeat(panels * len(points))
        return points.flatten(0, 1), log_weights


class Pinwheel(ExactDensity):
    """Equal Gaussian arms, each turned by an angle that grows with the distance from the origin.

    Before turning, an arm has mean (``radius``, 0) and standard deviations ``radial_std`` and ``tangential_std``. A
    point at distance r of arm k is then rotated by 2πk/``arms`` + ``twist``·r. The rotation preserves areas, so the
    change of variables has Jacobian 1.

    Args:
        radius: Distance of an arm's mean from the origin.
        radial_std: Standard deviation along an arm.
        tangential_std: Standard deviation across an arm.
        twist: Angle for each unit of distance.
        arms: Number of arms.
    """

    def __init__(
        self,
        radius: float = 2.0,
        radial_std: float = 0.6,
        tangential_std: float = 0.2,
        twist: float = 0.5,
        arms: int = 5,
    ) -> None:
        super().__init__(torch.zeros(2))
        self.mean, self.std = (radius, 0.0), (radial_std, tangential_std)
        self.twist, self.arms = twist, arms

    @property
    def modes(self) -> Tensor:
        """The turned means of the arms ``(arms, 2)``."""
        return on_circle(self.mean[0], self._bases(self.origin) + self.twist * self.mean[0])

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, 2)``."""
        which = torch.randint(self.arms, (n,), generator=generator, device=self.origin.device)
        arm = self._normal(n, generator)
        arm = arm * arm.new_tensor(self.std) + arm.new_tensor(self.mean)
        return _turn(arm, self._bases(arm)[which] + self.twist * torch.linalg.vector_norm(arm, dim=-1))

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, 2)``."""
        angles = self._bases(x) + self.twist * torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        z = (_turn(x[:, None], -angles) - x.new_tensor(self.mean)) / x.new_tensor(self.std)
        constant = math.log(2 * math.pi * self.std[0] * self.std[1] * self.arms)
        return (-0.5 * z.square().sum(-1)).logsumexp(1) - constant

    def _bases(self, like: Tensor) -> Tensor:
        return torch.arange(self.arms).to(like) * (2 * math.pi / self.arms)


def on_circle(radius: float | Tensor, angles: Tensor) -> Tensor:
    """Points ``(…, 2)`` at ``angles`` ``(…)`` of the circle around the origin."""
    return radius * torch.stack([angles.cos(), angles.sin()], -1)


def _turn(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([cos * x[..., 0] - sin * x[..., 1], sin * x[..., 0] + cos * x[..., 1]], -1)


class Checkerboard(ExactDensity):
    """Uniform on the eight dark squares, of side 2, of a 4 x 4 board that covers [-4, 4) x [-4, 4).

    The square with its lower left corner at (-4, -4) is dark. The density is 1/32 on dark squares and 0 elsewhere.
    """

    def __init__(self) -> None:
        super().__init__(torch.zeros(2))

    @property
    def modes(self) -> Tensor:
        """Centers of the dark squares ``(8, 2)``."""
        cells = torch.cartesian_prod(torch.arange(4), torch.arange(4))
        return cells[cells.sum(1) % 2 == 0].to(self.origin) * 2.0 - 3

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, 2)``."""
        which = torch.randint(8, (n,), generator=generator, device=self.origin.device)
        # Midpoints of a 2**-20 grid: torch.rand could round up onto a light square's edge.
        steps = torch.randint(2**20, (n, 2), generator=generator, device=self.origin.device)
        return self.modes[which] - 1 + (steps + 0.5) / 2**19

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, 2)``: -log 32 on dark squares, -inf elsewhere."""
        on_board = (x >= -4).all(1) & (x < 4).all(1)
        dark = (x / 2).floor().sum(1) % 2 == 0
        return torch.where(on_board & dark, -math.log(32), -math.inf).to(x)
