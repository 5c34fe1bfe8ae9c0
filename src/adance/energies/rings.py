"""Rings: noisy circles around the origin of the plane, a density with exact samples."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from adance.energies.analytic import ExactDensity
from adance.energies.mixtures import sample_components
from adance.energies.plane import on_circle
from adance.errors import InputError


class Rings(ExactDensity):
    """Points on circles around the origin, uniform in angle, plus isotropic Gaussian noise.

    ``p(x) = Σₖ wₖ exp(−(‖x‖² + ρₖ²)/2s²) I₀(‖x‖ρₖ/s²)/2πs²`` for ``x`` in the plane; the radius of a point of ring k
    has the Rice distribution.

    Args:
        radii: ρ, positive.
        std: s.
        weights: w, positive; normalized to sum 1. By default equal.

    Raises:
        InputError: A radius, ``std`` or a weight is not positive, or there are not as many weights as radii.
    """

    radii: Tensor
    log_weights: Tensor

    def __init__(
        self, radii: Sequence[float] = (1.0, 2.0, 3.0), std: float = 0.1, weights: Sequence[float] | None = None
    ) -> None:
        super().__init__(torch.zeros(2))
        self.std, self.equal = std, weights is None
        weights = [1.0] * len(radii) if weights is None else weights
        if not radii or min(radii) <= 0 or not std > 0 or len(weights) != len(radii) or min(weights) <= 0:
            raise InputError(
                "Rings needs positive radii, std > 0 and as many positive weights as radii, "
                f"got radii={list(radii)}, std={std}, weights={list(weights)}"
            )
        self.register_buffer("radii", torch.tensor(list(radii)))
        self.register_buffer("log_weights", torch.tensor([math.log(w / sum(weights)) for w in weights]))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, 2)``."""
        angle = 2 * math.pi * self._uniform(n, generator)
        rho = self.radii[sample_components(self.log_weights, self.equal, n, generator)]
        return on_circle(rho[:, None], angle) + self.std * self._normal(n, generator)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, 2)``."""
        r, rho, variance = torch.linalg.vector_norm(x, dim=1)[:, None], self.radii.to(x), self.std**2
        parts: Tensor = torch.special.i0e(r * rho / variance).log() - (r - rho).square() / (2 * variance)
        return (self.log_weights.to(x) + parts).logsumexp(1) - math.log(2 * math.pi * variance)
