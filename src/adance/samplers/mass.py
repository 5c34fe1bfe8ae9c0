"""Mass matrices of Hamiltonian Monte Carlo, and how to estimate them from a first run."""

import torch
from torch import Tensor

from adance.errors import InputError


class Mass:
    """A mass matrix: a diagonal one of the event's shape, or a dense one ``(d, d)`` over the flattened event.

    Raises:
        InputError: ``mass`` is not positive, or not symmetric and positive definite.
    """

    def __init__(self, mass: Tensor) -> None:
        self.mass = mass
        self._factors: dict[tuple[torch.dtype, torch.device], tuple[Tensor, Tensor]] = {}
        square = mass.ndim == 2 and mass.shape[0] == mass.shape[1]
        if not ((mass > 0).all() or (square and not torch.linalg.cholesky_ex(mass)[1].any())):
            raise InputError("mass must be positive in every coordinate, or a symmetric positive definite matrix")

    def check(self, x: Tensor) -> None:
        """Raise :class:`InputError` if the mass does not fit events of ``x`` ``(B, *event)``."""
        event, d = x.shape[1:], x[0].numel()
        if self.mass.shape == event:
            return
        if self.mass.shape != (d, d):
            raise InputError(
                f"a mass of shape {tuple(self.mass.shape)} does not fit events of shape {tuple(event)}; "
                f"use that shape, or ({d}, {d})"
            )
        if torch.linalg.cholesky_ex(self.mass)[1].any():
            raise InputError(f"a mass of shape ({d}, {d}) must be a symmetric positive definite matrix")

    def root(self, noise: Tensor) -> Tensor:
        """``M^½ ξ``: momenta of covariance M from standard normal ``noise`` ``(B, *event)``."""
        if self.mass.shape == noise.shape[1:]:
            return self._of(noise)[0] * noise
        return (noise.flatten(1) @ self._of(noise)[0].T).view_as(noise)

    def solve(self, momentum: Tensor) -> Tensor:
        """``M⁻¹v`` of ``momentum`` ``(B, *event)``."""
        if self.mass.shape == momentum.shape[1:]:
            return momentum * self._of(momentum)[1]
        return (momentum.flatten(1) @ self._of(momentum)[1]).view_as(momentum)

    def _of(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """A root and the inverse of M, in the precision and on the device of ``x``."""
        key = (x.dtype, x.device)
        if key not in self._factors:
            mass = self.mass.to(torch.float64)
            if self.mass.shape == x.shape[1:]:
                root, inverse = mass.sqrt(), 1 / mass
            else:
                root = torch.linalg.cholesky(mass)
                inverse = torch.cholesky_inverse(root)
            self._factors[key] = (root.to(x), inverse.to(x))
        return self._factors[key]


def diagonal_mass(x: Tensor) -> Tensor:
    """The inverse variance of each coordinate, ``(*event)``, from positions ``x`` ``(N, *event)`` of a first run."""
    return 1 / x.var(0).clamp(min=torch.finfo(x.dtype).tiny)


def dense_mass(x: Tensor) -> Tensor:
    """The inverse covariance ``(d, d)`` of the flattened event from ``x`` ``(N, *event)``, N well above d."""
    covariance = torch.cov(x.flatten(1).T.to(torch.float64)).view(x[0].numel(), -1)
    return torch.cholesky_inverse(torch.linalg.cholesky(covariance)).to(x.dtype)
