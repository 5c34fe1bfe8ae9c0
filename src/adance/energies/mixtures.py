"""Normal distributions with any covariance, and their mixtures, also fitted; energies ``−log p`` with exact samples."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from adance.energies.analytic import ExactDensity
from adance.errors import InputError

FULL_UP_TO = 64


class FullGaussian(ExactDensity):
    """The normal distribution ``N(μ, Σ)`` of vectors: ``E(x) = ½(x − μ)ᵀΣ⁻¹(x − μ) + ½ log det 2πΣ``.

    Args:
        mean: μ ``(D,)``.
        covariance: Σ ``(D, D)``, symmetric and positive definite.

    Raises:
        InputError: The shapes do not fit, or ``covariance`` is not symmetric and positive definite.
    """

    mean: Tensor
    factor: Tensor

    def __init__(self, mean: Tensor, covariance: Tensor) -> None:
        super().__init__(mean)
        if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)):
            raise InputError(
                "a full Gaussian needs a mean (D,) and a covariance (D, D), "
                f"got {tuple(mean.shape)} and {tuple(covariance.shape)}"
            )
        self.register_buffer("mean", mean.clone())
        self.register_buffer("factor", cholesky(covariance))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, D)``."""
        return self.mean + self._normal(n, generator) @ self.factor.T

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, D)``."""
        return log_normal(x, self.mean, self.factor)


class GaussianMixture(ExactDensity):
    """The mixture ``p(x) = Σₖ wₖ N(x; μₖ, Σₖ)`` of vectors.

    Args:
        means: μ ``(K, D)``.
        covariances: Σ ``(K, D, D)``, or a shared one ``(D, D)``.
        weights: w ``(K,)``, positive; normalized to sum 1. By default equal.

    Raises:
        InputError: The shapes do not fit, a covariance is not positive definite, or a weight is not positive.
    """

    means: Tensor
    factors: Tensor
    log_weights: Tensor

    def __init__(self, means: Tensor, covariances: Tensor, weights: Tensor | Sequence[float] | None = None) -> None:
        if means.ndim != 2:
            raise InputError(f"a Gaussian mixture needs means (K, D), got {tuple(means.shape)}")
        super().__init__(means[0])
        k, d = means.shape
        if covariances.shape not in ((d, d), (k, d, d)):
            raise InputError(
                f"a mixture of {k} Gaussians in {d} dimensions needs covariances ({k}, {d}, {d}) or ({d}, {d}), "
                f"got {tuple(covariances.shape)}"
            )
        w = means.new_ones(k) if weights is None else torch.as_tensor(weights, dtype=means.dtype, device=means.device)
        if w.shape != (k,) or not (w > 0).all():
            raise InputError(f"a mixture of {k} Gaussians needs {k} positive weights, got {w.tolist()}")
        self.register_buffer("means", means.clone())
        self.register_buffer("factors", cholesky(covariances).expand(k, d, d).clone())
        self.register_buffer("log_weights", (w / w.sum()).log())
        self.equal = weights is None

    @classmethod
    def on_circle(cls, modes: int = 8, radius: float = 4.0, std: float = 0.5) -> "GaussianMixture":
        """A mixture of equal isotropic Gaussians, evenly spaced on a circle in the plane."""
        angles = torch.arange(modes) * (2 * math.pi / modes)
        return cls(radius * torch.stack([angles.cos(), angles.sin()], 1), std**2 * torch.eye(2))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, D)``."""
        which = sample_components(self.log_weights, self.equal, n, generator)
        return self.means[which] + (self.factors[which] @ self._normal(n, generator)[..., None]).squeeze(2)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, D)``."""
        parts = log_normal(x, self.means[:, None].to(x), self.factors.to(x))
        return (self.log_weights[:, None].to(x) + parts).logsumexp(0)


class FittedMixture(ExactDensity):
    """A mixture of normal distributions on events of any shape, flattened.

    Args:
        mixture: The mixture on vectors ``(D,)``.
        event_shape: The shape of an event, of D numbers.
    """

    def __init__(self, mixture: GaussianMixture, event_shape: Sequence[int]) -> None:
        super().__init__(mixture.origin.view(tuple(event_shape)))
        self.mixture, self.event_shape = mixture, tuple(event_shape)

    @classmethod
    def to_data(cls, x: Tensor, components: int, seed: int = 0) -> "FittedMixture":
        """Fit to ``x`` ``(N, *event)`` by expectation maximization (scikit-learn).

        Covariances are full up to 64 dimensions, diagonal above, with 1e-4 of the data's mean variance added.
        """
        from sklearn.mixture import GaussianMixture as Fitted  # slow to import, and seldom needed

        flat = x.flatten(1).double().cpu().numpy()
        floor = 1e-4 * float(flat.var(0).mean()) or 1e-6
        kind = "full" if flat.shape[1] <= FULL_UP_TO else "diag"
        found = Fitted(min(components, len(flat)), covariance_type=kind, reg_covar=floor, random_state=seed).fit(flat)
        covariances = found.covariances_ if kind == "full" else np.apply_along_axis(np.diag, 1, found.covariances_)
        means, covariances, weights = map(torch.from_numpy, (found.means_, covariances, found.weights_))
        return cls(GaussianMixture(means, covariances, weights).to(x), x.shape[1:])

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, *event)``."""
        return self.mixture.sample(n, generator).view(n, *self.event_shape)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
        return self.mixture.log_prob(x.flatten(1))


def cholesky(covariance: Tensor) -> Tensor:
    """The lower factor L of ``Σ = LLᵀ`` ``(…, D, D)``.

    Raises:
        InputError: Σ is not symmetric and positive definite.
    """
    factor: Tensor
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if failed.any() or not torch.allclose(covariance, covariance.mT):
        raise InputError("a covariance must be symmetric and positive definite")
    return factor


def log_normal(x: Tensor, mean: Tensor, factor: Tensor) -> Tensor:
    """``log N(x; μ, LLᵀ)`` ``(B,)`` of ``x`` ``(B, D)``; ``(K, B)`` for ``μ`` ``(K, 1, D)`` and ``L`` ``(K, D, D)``."""
    z: Tensor = torch.linalg.solve_triangular(factor, (x - mean).mT, upper=False)
    log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return -0.5 * (z.square().sum(-2) + x.shape[-1] * math.log(2 * math.pi)) - log_det[..., None]


def sample_components(log_weights: Tensor, equal: bool, n: int, generator: torch.Generator | None) -> Tensor:
    """Indices ``(n,)`` of mixture components, drawn by their weights; ``equal``: all weights are the same."""
    if equal or n == 0:
        return torch.randint(len(log_weights), (n,), generator=generator, device=log_weights.device)
    return torch.multinomial(log_weights.exp(), n, replacement=True, generator=generator)
