"""A mixture of normal distributions fitted to data."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from adance.energies.analytic import ExactDensity
from adance.energies.mixtures import GaussianMixture

FULL_UP_TO = 64


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
