"""Data sets in the plane whose exact density is known."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from adance.energies.analytic import ExactDensity
from adance.energies.mixtures import GaussianMixture
from adance.energies.plane import Checkerboard, NoisyCurves, Pinwheel, on_circle
from adance.energies.rings import Rings


class Toy(ExactDensity):
    """A density in the plane, as a data set.

    Args:
        name: Key in `TOYS`.
        density: The density itself.
        extent: Half-width of a square about the origin that holds all but some 1e-5 of the mass.
        modes: Centers (M, 2) of separate clumps of equal mass, or None if there are no such clumps.
    """

    def __init__(self, name: str, density: ExactDensity, extent: float = 4.0, modes: Tensor | None = None) -> None:
        super().__init__(torch.zeros(2))
        self.name, self.density, self.extent, self.modes = name, density, extent, modes

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """`n` independent samples (n, 2)."""
        return self.density.sample(n, generator)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-density (B,) in nats at points `x` (B, 2), in the dtype of `x`."""
        return self.density.log_prob(x)


def eight_gaussians() -> Toy:
    """Eight equal isotropic Gaussians evenly spaced on a circle: radius 2.8, standard deviation 0.2."""
    density = GaussianMixture.on_circle(8, 2.8, 0.2)
    return Toy("8gaussians", density, modes=density.means)


def pinwheel() -> Toy:
    """Five Gaussian arms about the origin, twisted."""
    density = Pinwheel()
    return Toy("pinwheel", density, extent=5.0, modes=density.modes)


def checkerboard() -> Toy:
    """Uniform on the dark squares of a board."""
    density = Checkerboard()
    return Toy("checkerboard", density, modes=density.modes)


def moons() -> Toy:
    """Two interleaved half circles of radius 2, uniform in angle, noise 0.15.

    The upper one has its center at (-1, -0.5), the lower one at (1, 0.5).
    """

    def curves(u: Tensor) -> Tensor:
        upper = on_circle(2.0, 2 * math.pi * (u / 2))
        shift = upper.new_tensor([1.0, 0.5])
        return torch.stack([upper - shift, shift - upper])

    return Toy("moons", NoisyCurves(curves, 0.15))


def circles() -> Toy:
    """Two circles about the origin of radius 1.5 and 3 with equal mass, uniform in angle, noise 0.15."""
    return Toy("circles", Rings((1.5, 3.0), 0.15))


def rings() -> Toy:
    """Four circles about the origin of radius 0.8, 1.6, 2.4 and 3.2 with equal mass, uniform in angle, noise 0.1."""
    return Toy("rings", Rings((0.8, 1.6, 2.4, 3.2), 0.1))


def _spiral(u: Tensor, start: float, end: float, radius: float) -> Tensor:
    """Archimedean spiral r = radius * angle / end; the square root spreads points almost evenly along it."""
    angle = (start**2 + u * (end**2 - start**2)).sqrt()
    return (radius * angle / end)[..., None] * torch.stack([angle.cos(), angle.sin()], -1)


def two_spirals() -> Toy:
    """Two arms, one the other's mirror image in the origin, noise 0.1.

    Each runs from angle pi / 2 to 3 pi with radius 3.4 * angle / (3 pi), so from 0.57 to 3.4; the square of the
    angle is uniform.
    """

    def curves(u: Tensor) -> Tensor:
        arm = _spiral(u, math.pi / 2, 3 * math.pi, 3.4)
        return torch.stack([arm, -arm])

    return Toy("2spirals", NoisyCurves(curves, 0.1))


def swissroll() -> Toy:
    """One spiral from angle 1.5 pi to 4.5 pi with radius 3.5 * angle / (4.5 pi), so from 1.17 to 3.5; noise 0.1.

    The square of the angle is uniform.
    """
    return Toy("swissroll", NoisyCurves(lambda u: _spiral(u, 1.5 * math.pi, 4.5 * math.pi, 3.5)[None], 0.1))


TOYS: dict[str, Callable[[], Toy]] = {
    "8gaussians": eight_gaussians,
    "pinwheel": pinwheel,
    "checkerboard": checkerboard,
    "moons": moons,
    "circles": circles,
    "rings": rings,
    "2spirals": two_spirals,
    "swissroll": swissroll,
}
