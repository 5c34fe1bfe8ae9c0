"""Exactly known densities that are hard for samplers: funnel, banana, double well; each energy is ``−log p``."""

import math

import torch
from torch import Tensor

from adance.energies.analytic import ExactDensity
from adance.errors import InputError


class _Target(ExactDensity):
    """A density of vectors with ``dim`` axes, at least ``least``, and ``numbers`` above 0."""

    def __init__(self, dim: int, least: int, **numbers: float) -> None:
        if dim < least:
            raise InputError(f"{type(self).__name__} needs at least {least} dimensions, got {dim}")
        for name, value in numbers.items():
            if not value > 0:
                raise InputError(f"{type(self).__name__} needs {name} > 0, got {value}")
        super().__init__(torch.zeros(dim))


class Funnel(_Target):
    """Neal's funnel: ``v = x₁ ~ N(0, s²)``, and every other axis ``xᵢ | v ~ N(0, eᵛ)``.

    Args:
        dim: D ≥ 2.
        scale: s.

    Raises:
        InputError: ``dim`` is below 2, or ``scale`` not above 0.
    """

    def __init__(self, dim: int = 10, scale: float = 3.0) -> None:
        super().__init__(dim, 2, scale=scale)
        self.scale = scale

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, D)``."""
        noise = self._normal(n, generator)
        v = self.scale * noise[:, :1]
        return torch.cat([v, (v / 2).exp() * noise[:, 1:]], 1)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, D)``."""
        v = x[:, 0]
        rest = (x[:, 1:].square() * (-v).exp()[:, None] + v[:, None]).sum(1)
        return -0.5 * ((v / self.scale).square() + rest + _normal_constant(x)) - math.log(self.scale)


class Banana(_Target):
    """The Rosenbrock density: ``x₁ ~ N(a, s₁²)``, ``x₂ | x₁ ~ N(c·x₁², s₂²)``, every other axis ``N(0, 1)``.

    Rosenbrock's function ``(1 − x₁)²/20 + 5(x₂ − x₁²)²`` has a = 1, s₁ = √10, c = 1, s₂ = √0.1.

    Args:
        dim: D ≥ 2.
        center: a.
        spread: s₁.
        curvature: c.
        width: s₂.

    Raises:
        InputError: ``dim`` is below 2, or ``spread`` or ``width`` not above 0.
    """

    def __init__(
        self, dim: int = 2, center: float = 0.0, spread: float = 1.0, curvature: float = 1.0, width: float = 0.3
    ) -> None:
        super().__init__(dim, 2, spread=spread, width=width)
        self.center, self.spread, self.curvature, self.width = center, spread, curvature, width

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, D)``."""
        noise = self._normal(n, generator)
        x1 = self.center + self.spread * noise[:, :1]
        x2 = self.curvature * x1.square() + self.width * noise[:, 1:2]
        return torch.cat([x1, x2, noise[:, 2:]], 1)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, D)``."""
        z1 = (x[:, 0] - self.center) / self.spread
        z2 = (x[:, 1] - self.curvature * x[:, 0].square()) / self.width
        squares = z1.square() + z2.square() + x[:, 2:].square().sum(1)
        return -0.5 * (squares + _normal_constant(x)) - math.log(self.spread * self.width)


class DoubleWell(_Target):
    """``E(x) = h((x₁/a)² − 1)² − t·x₁ + ½Σ_{i>1} xᵢ² + log Z``: two wells at ±a, a barrier of height h, a tilt t.

    log Z is a sum over a fine grid, whose error is below rounding for this smooth, light-tailed integrand;
    samples invert the distribution function on a grid of 2¹⁶ cells in float64.

    Args:
        dim: D ≥ 1.
        barrier: h.
        separation: a.
        tilt: t; positive makes the well at +a deeper.

    Raises:
        InputError: ``dim`` is below 1, or ``barrier`` or ``separation`` not above 0.
    """

    def __init__(self, dim: int = 2, barrier: float = 4.0, separation: float = 2.0, tilt: float = 0.0) -> None:
        super().__init__(dim, 1, barrier=barrier, separation=separation)
        self.barrier, self.separation, self.tilt = barrier, separation, tilt
        grid, well = self._grid()
        log_sum = float((-well).logsumexp(0)) + math.log(grid[1] - grid[0])
        self.log_z = log_sum + (dim - 1) * 0.5 * math.log(2 * math.pi)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, D)``."""
        grid, well = self._grid()
        density = (well.min() - well).exp()
        mass = torch.cat([density.new_zeros(1), torch.cumulative_trapezoid(density, grid)])
        mass = (mass / mass[-1]).to(self.origin.device)
        u = torch.rand(n, generator=generator, dtype=torch.float64, device=self.origin.device)
        cell = torch.searchsorted(mass, u, right=True).clamp(1, len(grid) - 1)
        below, above = mass[cell - 1], mass[cell]
        part = (u - below) / (above - below)
        x1 = grid[0] + (grid[1] - grid[0]) * (cell - 1 + part)
        return torch.cat([x1.to(self.origin)[:, None], self._normal(n, generator)[:, 1:]], 1)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, D)``."""
        return -self._well(x[:, 0]) - 0.5 * x[:, 1:].square().sum(1) - self.log_z

    def _well(self, x: Tensor) -> Tensor:
        return self.barrier * ((x / self.separation).square() - 1).square() - self.tilt * x

    def _grid(self) -> tuple[Tensor, Tensor]:
        """Points ``(2¹⁶ + 1,)``, float64, to where the density is e⁻⁵⁰ of its peak, and the energies of x₁ there."""
        reach = 2 * self.separation
        while True:
            grid = torch.linspace(-reach, reach, 2**16 + 1, dtype=torch.float64)
            well = self._well(grid)
            if min(well[0], well[-1]) - well.min() > 50:
                return grid, well
            reach *= 1.2


def _normal_constant(x: Tensor) -> float:
    return x.shape[1] * math.log(2 * math.pi)
