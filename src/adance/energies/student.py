"""The multivariate Student's t distribution: a bell with heavy tails."""

import math

import torch
from torch import Tensor

from adance.energies.analytic import ExactDensity
from adance.energies.mixtures import cholesky
from adance.errors import InputError

DEGREES = 4.0
"""Degrees of freedom of a fitted distribution: low enough for heavy tails, high enough for a covariance."""


class StudentT(ExactDensity):
    """Student's t of vectors: ``p(x) ∝ (1 + (x − μ)ᵀΣ⁻¹(x − μ)/ν)^(−(ν + D)/2)``.

    Args:
        location: μ ``(D,)``.
        scale: Σ ``(D, D)``, symmetric and positive definite; the covariance is ``Σ·ν/(ν − 2)`` for ν > 2.
        degrees: ν, degrees of freedom, above 0.

    Raises:
        InputError: The shapes do not fit, ``scale`` is not symmetric and positive definite, or ``degrees`` not above 0.
    """

    location: Tensor
    factor: Tensor
    degrees: Tensor

    def __init__(self, location: Tensor, scale: Tensor, degrees: float = DEGREES) -> None:
        super().__init__(location)
        if location.ndim != 1 or scale.shape != (len(location), len(location)) or not degrees > 0:
            raise InputError(
                "Student's t needs a location (D,), a scale (D, D) and degrees above 0, got "
                f"{tuple(location.shape)}, {tuple(scale.shape)} and {degrees}"
            )
        self.register_buffer("location", location.clone())
        self.register_buffer("factor", cholesky(scale))
        self.register_buffer("degrees", location.new_tensor(degrees))

    @classmethod
    def fitted(cls, x: Tensor) -> "StudentT":
        """The distribution with 4 degrees of freedom that has the mean and covariance of ``x`` ``(N, D)``."""
        return cls(x.mean(0), covariance_of(x) * (1 - 2 / DEGREES))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, D)``."""
        normal = self._normal(n, generator) @ self.factor.T
        # χ²/ν of ν degrees of freedom, by the standard gamma distribution of shape ν/2
        gamma = torch._standard_gamma(self.degrees.expand(n) / 2, generator=generator)
        return self.location + normal * (0.5 * self.degrees / gamma)[:, None].sqrt()

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, D)``."""
        z: Tensor = torch.linalg.solve_triangular(self.factor, (x - self.location).mT, upper=False)
        d, nu = x.shape[-1], self.degrees
        constant = torch.lgamma((nu + d) / 2) - torch.lgamma(nu / 2) - 0.5 * d * (nu * math.pi).log()
        tails = -0.5 * (nu + d) * (z.square().sum(-2) / nu).log1p()
        return constant + tails - self.factor.diagonal().log().sum()


def covariance_of(x: Tensor) -> Tensor:
    """The covariance ``(D, D)`` of ``x`` ``(N, D)``, in which a variance is at least 1e-4 of the mean variance."""
    centered = (x - x.mean(0)).double()
    covariance = centered.mT @ centered / len(x)
    floor = 1e-4 * covariance.diagonal().mean() + 1e-6
    return (covariance + floor * torch.eye(len(covariance), dtype=torch.float64, device=x.device)).to(x.dtype)
