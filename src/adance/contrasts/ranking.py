"""Ranking noise-contrastive estimation: which one of L is the datum?"""

from collections.abc import Sequence

import torch
from torch import Tensor

from adance.contrasts.contrast import Contrast
from adance.errors import InputError


class Ranking(Contrast):
    """Softmax over one datum and L − 1 noises (thesis 2.14 to 2.16).

    The posterior that the datum is at place k is ``softmax(log ρᵢ + rᵢ)ₖ``, and the loss
    ``−Σₖ ρₖ E[log posterior of k, with the datum at k]``: for equal ρ, the cross-entropy of the datum among the L. A
    constant in r cancels.

    Args:
        noises: L − 1 ≥ 1.
        probabilities: ρ: L positive numbers that sum to 1; equal by default. Unequal ones cost L² terms per row.

    Raises:
        InputError: ``noises`` is below 1, or ``probabilities`` are not L positive numbers that sum to 1.
    """

    bounded_weights = True
    ignores_constant = True

    def __init__(self, noises: int = 10, probabilities: Sequence[float] | None = None) -> None:
        super().__init__(noises)
        self.probabilities, self.curvature = None, noises / (noises + 1)  # 1 − Σρ²
        if probabilities is not None:
            if len(probabilities) != noises + 1:
                raise InputError(
                    f"Ranking with noises={noises} needs {noises + 1} probabilities, got {len(probabilities)}"
                )
            if not (min(probabilities) > 0 and abs(sum(probabilities) - 1) < 1e-6):
                raise InputError(f"probabilities must be positive and sum to 1, got {list(probabilities)}")
            self.probabilities, self.curvature = tuple(probabilities), 1 - sum(rho**2 for rho in probabilities)

    def __call__(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The loss (2.16) from log-ratios on data ``(B,)`` and on noise ``(B, L − 1)``."""
        r = torch.cat([r_data[:, None], r_noise], 1)
        if self.probabilities is None:
            return (r.logsumexp(1) - r_data).mean()
        log_rho = r.new_tensor(self.probabilities).log()
        # row k: the datum at place k, the noise samples in order at the other places
        place = torch.arange(r.shape[1], device=r.device)
        rows = torch.where(place < place[:, None], place + 1, place).fill_diagonal_(0)
        log_posterior = log_rho + r_data[:, None] - (log_rho + r[:, rows]).logsumexp(2)
        return -(log_posterior * log_rho.exp()).sum(1).mean()

    def zero_temperature_loss(self, d_data: Tensor, d_noise: Tensor) -> Tensor:
        """Max-margin: by how much the best noise sample beats the datum; ties share the gradient, as for equal ρ."""
        best = torch.cat([d_data[:, None], d_noise], 1).amax(1)
        return (best - d_data).mean()
