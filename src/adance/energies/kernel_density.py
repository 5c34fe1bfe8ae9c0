"""A kernel density estimate in whitened coordinates, with several bandwidths."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from adance.energies.analytic import ExactDensity
from adance.energies.mixtures import cholesky, sample_components
from adance.energies.student import covariance_of

CENTERS = 2000
"""Most centers of a fitted estimate."""

BANDWIDTHS = (0.03, 0.1, 0.3, 1.0, 1.5)
"""Bandwidths of a fitted estimate, in units of Silverman's."""

CHUNK = 2**18
"""Distances that are computed at a time, few enough for the cache."""

ROUNDS = 100

SMALLEST = -80.0
"""Logarithms of kernels below this one count as it, since denormal numbers are slow."""


class KernelDensity(ExactDensity):
    """Normal kernels of several bandwidths around each center: ``p(x) = Σⱼ wⱼ meanₘ N(x; cₘ, hⱼ²LLᵀ)``.

    Args:
        centers: Centers ``(M, D)``.
        factor: L ``(D, D)``, lower triangular: the shape of a kernel.
        bandwidths: h ``(J,)``, above 0.
        weights: w ``(J,)``, positive, of sum 1.
    """

    centers: Tensor
    factor: Tensor
    bandwidths: Tensor
    log_weights: Tensor

    def __init__(self, centers: Tensor, factor: Tensor, bandwidths: Tensor, weights: Tensor) -> None:
        super().__init__(centers[0])
        self.register_buffer("centers", centers.clone())
        self.register_buffer("factor", factor.clone())
        self.register_buffer("bandwidths", bandwidths.clone())
        self.register_buffer("log_weights", weights.log())

    @classmethod
    def fitted(
        cls, x: Tensor, generator: torch.Generator | None = None, bandwidths: Sequence[float] = BANDWIDTHS
    ) -> "KernelDensity":
        """Fit to ``x`` ``(N, D)``: up to 2,000 rows are centers, and kernels have the shape of the data's covariance.

        The weights of the bandwidths maximize the likelihood of the centers, each without its own kernels.
        """
        rows = torch.randperm(len(x), generator=generator, device=x.device)[:CENTERS]
        centers, factor = x[rows], cholesky(covariance_of(x))
        n, d = centers.shape
        silverman = (4 / ((d + 2) * n)) ** (1 / (d + 4))
        h = silverman * torch.as_tensor(bandwidths, dtype=x.dtype, device=x.device)
        density = cls(centers, factor, h, torch.full_like(h, 1 / len(h)))
        density.log_weights.copy_(stacking_weights(density._left_out()).log())
        return density

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, D)``."""
        which = sample_components(self.log_weights, False, n, generator)
        rows = torch.randint(len(self.centers), (n,), generator=generator, device=self.centers.device)
        return self.centers[rows] + self.bandwidths[which][:, None] * (self._normal(n, generator) @ self.factor.T)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, D)``, computed in chunks."""
        rows = max(1, CHUNK // len(self.centers))
        parts = [self._log_kernels(part) for part in torch.split(x, rows)]
        return (self.log_weights[:, None] + torch.cat(parts, 1)).logsumexp(0)

    def _log_kernels(self, x: Tensor) -> Tensor:
        """The log-density of each bandwidth alone ``(J, B)``."""
        return self._mean_kernel(self._squares(x)) - math.log(len(self.centers))

    def _left_out(self) -> Tensor:
        """The log-density of each bandwidth alone at each center ``(J, M)``, without the kernel of that center."""
        squares = self._squares(self.centers)
        squares.fill_diagonal_(torch.inf)
        return self._mean_kernel(squares) - math.log(max(1, len(self.centers) - 1))

    def _squares(self, x: Tensor) -> Tensor:
        """Squared distances to the centers ``(B, M)`` in whitened coordinates, around which rounding is smallest."""
        mean = self.centers.mean(0)
        both = torch.cat([x, self.centers.to(x)]) - mean.to(x)
        z: Tensor = torch.linalg.solve_triangular(self.factor.to(x), both.mT, upper=False).mT
        y, c = z[: len(x)], z[len(x) :]
        return (y.square().sum(1)[:, None] - 2 * y @ c.T + c.square().sum(1)).clamp(min=0)

    def _mean_kernel(self, squares: Tensor) -> Tensor:
        """``log Σ_c`` of the kernels ``(J, B)``, from squared distances ``(B, M)``."""
        d = self.factor.shape[0]
        level = -0.5 * d * math.log(2 * math.pi) - self.factor.diagonal().log().sum()
        nearest = squares.amin(1)
        beyond = squares - nearest[:, None]
        sums = []
        for h in self.bandwidths.tolist():
            rate = -0.5 / h**2
            sums.append((rate * beyond).clamp_(min=SMALLEST).exp_().sum(1).log() + rate * nearest - d * math.log(h))
        return torch.stack(sums) + level.to(squares)


def stacking_weights(log_parts: Tensor, smallest: float = 1e-3) -> Tensor:
    """Weights ``(J,)`` that maximize the mean log-density of ``Σⱼ wⱼ pⱼ``, from ``log pⱼ`` ``(J, M)``, by EM.

    Each is at least about ``smallest``, so that no part is lost.
    """
    weights = log_parts.new_full((len(log_parts),), 1 / len(log_parts))
    for _ in range(ROUNDS):
        weights = (weights.log()[:, None] + log_parts).softmax(0).nan_to_num(0).mean(1).clamp(min=smallest)
        weights = weights / weights.sum()
    return weights
