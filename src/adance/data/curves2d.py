"""Toy laws of one recipe: a point drawn on a curve, plus isotropic Gaussian noise.

The density is the integral of the Gaussian along the curve. Gauss-Legendre quadrature on panels no longer than one
and a half noise widths gives its logarithm to better than 1e-4 wherever the law has mass.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from adance.data.toy import Toy, device_of

_NODES_PER_PANEL = 6
_CHUNK = 500_000


@dataclass(frozen=True, eq=False)
class NoisyCurves(Toy):
    """A fair choice among M curves, a point on it, and Gaussian noise.

    Attributes:
        name: key in `TOYS`.
        curves: maps u (n,) in [0, 1], drawn uniformly, to the points (M, n, 2) of all M curves.
        std: standard deviation of the noise in each coordinate.
        extent: half-width of a square about the origin that holds essentially all mass.
    """

    name: str
    curves: Callable[[Tensor], Tensor]
    std: float
    extent: float = 4.0
    modes: None = None

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws (n, 2)."""
        device = device_of(generator)
        points = self.curves(torch.rand(n, generator=generator, device=device))
        which = torch.randint(len(points), (n,), generator=generator, device=device)
        noise = torch.randn(n, 2, generator=generator, device=device)
        return points[which, torch.arange(n, device=device)] + self.std * noise

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (B,) at `x` (B, 2), by quadrature along the curves."""
        nodes, log_weights = (part.to(x) for part in self._quadrature)
        rows = max(1, _CHUNK // len(nodes))
        constant = math.log(2 * math.pi * self.std**2)
        parts = [torch.logsumexp(log_weights - self._half_square(chunk, nodes), 1) for chunk in torch.split(x, rows)]
        return torch.cat(parts) - constant

    def _half_square(self, x: Tensor, nodes: Tensor) -> Tensor:
        dx = x[:, :1] - nodes[:, 0]
        dy = x[:, 1:] - nodes[:, 1]
        return (dx.square() + dy.square()) / (2 * self.std**2)

    @cached_property
    def _quadrature(self) -> tuple[Tensor, Tensor]:
        """Nodes (Q, 2) and the logarithms (Q,) of their probabilities."""
        path = self.curves(torch.linspace(0, 1, 2001, dtype=torch.float64))
        speed = (path.diff(dim=1) * 2000).norm(dim=-1).max().item()
        panels = math.ceil(speed / (1.5 * self.std))
        abscissae, weights = (torch.from_numpy(a) for a in np.polynomial.legendre.leggauss(_NODES_PER_PANEL))
        u = ((abscissae + 1) / 2 + torch.arange(panels)[:, None]).flatten() / panels
        points = self.curves(u)
        log_weights = (weights / (2 * panels * len(points))).log().repeat(panels * len(points))
        return points.flatten(0, 1), log_weights


def _circle(radius: float, turns: Tensor) -> Tensor:
    angle = 2 * math.pi * turns
    return radius * torch.stack([angle.cos(), angle.sin()], -1)


def _spiral(u: Tensor, start: float, end: float, radius: float) -> Tensor:
    """Archimedean spiral r = radius * angle / end; the root makes the law nearly even along its length."""
    angle = (start**2 + u * (end**2 - start**2)).sqrt()
    return (radius * angle / end)[..., None] * torch.stack([angle.cos(), angle.sin()], -1)


def moons() -> Toy:
    """Two interleaved half circles of radius 2, uniform in angle, noise 0.15.

    The upper one has its centre at (-1, -0.5), the lower one at (1, 0.5).
    """

    def curves(u: Tensor) -> Tensor:
        upper = _circle(2.0, u / 2)
        shift = upper.new_tensor([1.0, 0.5])
        return torch.stack([upper - shift, shift - upper])

    return NoisyCurves("moons", curves, std=0.15)


def circles() -> Toy:
    """Two circles about the origin of radius 1.5 and 3 with equal mass, uniform in angle, noise 0.15."""
    return NoisyCurves("circles", lambda u: torch.stack([_circle(r, u) for r in (1.5, 3.0)]), std=0.15)


def rings() -> Toy:
    """Four circles about the origin of radius 0.8, 1.6, 2.4 and 3.2 with equal mass, uniform in angle, noise 0.1."""
    return NoisyCurves("rings", lambda u: torch.stack([_circle(r, u) for r in (0.8, 1.6, 2.4, 3.2)]), std=0.1)


def two_spirals() -> Toy:
    """Two arms, one the other's mirror image in the origin, noise 0.1.

    Each runs from angle pi / 2 to 3 pi with radius 3.4 * angle / (3 pi), so from 0.57 to 3.4; the square of the
    angle is uniform.
    """

    def curves(u: Tensor) -> Tensor:
        arm = _spiral(u, math.pi / 2, 3 * math.pi, 3.4)
        return torch.stack([arm, -arm])

    return NoisyCurves("2spirals", curves, std=0.1)


def swissroll() -> Toy:
    """One spiral from angle 1.5 pi to 4.5 pi with radius 3.5 * angle / (4.5 pi), so from 1.17 to 3.5; noise 0.1.

    The square of the angle is uniform.
    """
    return NoisyCurves("swissroll", lambda u: _spiral(u, 1.5 * math.pi, 4.5 * math.pi, 3.5)[None], std=0.1)


CURVES: dict[str, Callable[[], Toy]] = {
    "moons": moons,
    "circles": circles,
    "rings": rings,
    "2spirals": two_spirals,
    "swissroll": swissroll,
}
