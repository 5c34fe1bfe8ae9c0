"""Mixtures of normal laws."""

import math

import numpy as np
import torch
from torch import Tensor, nn

FULL_UP_TO = 64


class GaussianMixture(nn.Module):
    """A mixture of k normal laws on flattened events of dimension D.

    Args:
        weights: ``(k,)``, summing to 1.
        means: ``(k, *event)``.
        factors: Lower triangular Cholesky factors of the covariances ``(k, D, D)``.
    """

    weights: Tensor
    means: Tensor
    factors: Tensor

    def __init__(self, weights: Tensor, means: Tensor, factors: Tensor) -> None:
        super().__init__()
        self.register_buffer("weights", weights)
        self.register_buffer("means", means)
        self.register_buffer("factors", factors)

    @classmethod
    def fitted(cls, x: Tensor, components: int, seed: int = 0) -> "GaussianMixture":
        """Fitted to ``x`` ``(N, *event)`` by expectation maximisation (scikit-learn).

        Covariances are full up to 64 dimensions, diagonal above, with 1e-4 of the data's mean variance added.
        """
        from sklearn.mixture import GaussianMixture as Fitted  # slow to import, and seldom needed

        flat = x.flatten(1).double().cpu().numpy()
        floor = 1e-4 * float(flat.var(0).mean()) or 1e-6
        kind = "full" if flat.shape[1] <= FULL_UP_TO else "diag"
        found = Fitted(min(components, len(flat)), covariance_type=kind, reg_covar=floor, random_state=seed).fit(flat)
        covariances = found.covariances_
        factors = (
            np.linalg.cholesky(covariances) if kind == "full" else np.apply_along_axis(np.diag, 1, covariances**0.5)
        )
        means = torch.from_numpy(found.means_).view(-1, *x.shape[1:])
        return cls(torch.from_numpy(found.weights_).to(x), means.to(x), torch.from_numpy(factors).to(x))

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``−log p`` ``(B,)``."""
        return -self.log_prob(x)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent draws ``(n, *event)``."""
        which = torch.multinomial(self.weights, n, replacement=True, generator=generator)
        shape = (n, self.factors.shape[-1], 1)
        draws = torch.randn(shape, generator=generator, dtype=self.means.dtype, device=self.means.device)
        return self.means[which] + (self.factors[which] @ draws).view(n, *self.means.shape[1:])

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
        away = (x.flatten(1)[None] - self.means.flatten(1)[:, None]).mT
        whitened = torch.linalg.solve_triangular(self.factors, away, upper=False)
        log_volume = self.factors.diagonal(dim1=1, dim2=2).log().sum(1)
        constant = self.weights.log() - log_volume - 0.5 * x[0].numel() * math.log(2 * math.pi)
        each: Tensor = constant[:, None] - 0.5 * whitened.square().sum(1)
        return each.logsumexp(0)
