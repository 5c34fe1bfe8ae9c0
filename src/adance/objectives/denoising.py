"""Denoising score matching (Vincent 2011; thesis 2.7 and A.1), with one width of noise or several."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from adance.energies.conditional import given
from adance.energies.energy import check_events
from adance.energies.spectral import power_iteration_held
from adance.errors import InputError
from adance.objectives.objective import LossOutput, Objective, Setting
from adance.objectives.scores import energies_and_score, score_output


class DenoisingScoreMatching(Objective):
    """Denoising score matching: the score at noised data points back to the data.

    The loss is the mean over a batch x ``(B, *event)`` of ``λ·½‖σ s(x̃) + ξ‖²``, with x̃ = x + σξ, ξ ~ N(0, I), and
    s = −∇E at T = 1. Without λ it is σ² times the textbook form ``½‖s(x̃) − ∇log p_σ(x̃ | x)‖²``, so that its scale
    does not depend on σ, and its gradient is σ² times that of matching the scores of the Parzen density p_σ explicitly
    (A.1). Each row draws its σ from the list, all equally likely.

    Estimates, up to its constant, the density of data plus noise, not of data: with one σ, variance s² becomes s² + σ².
    With several σ, the one energy estimates the mixture ``Σ w_σ p_σ / Σ w_σ`` of the noised densities. With λ = 1 the
    weights are w_σ = σ², so that the widest dominates; λ ∝ w_σ/σ² gives other weights. It learns no log Z.

    Choose it for images, discrete or bounded data, and energies of any kind: it needs no second derivatives, so ReLU
    networks are fine, and a batch costs one gradient. A small σ is closer to the data's density, but noisier to learn:
    the gradient's variance relative to its mean grows like 1/σ².

    Args:
        sigma: σ, the standard deviation of the noise in model units, one or several.
        weights: w_σ, one for each σ: the shares of the noised densities in the mixture that is estimated. By default
            σ², which is λ = 1. They are scaled so that λ has mean 1 over the list.

    Raises:
        InputError: A σ or a weight is not above 0, or there is not one weight for each σ.
    """

    def __init__(self, sigma: float | Sequence[float] = 0.1, weights: Sequence[float] | None = None) -> None:
        super().__init__()
        sigmas = [float(s) for s in sigma] if isinstance(sigma, Sequence) else [float(sigma)]
        if not sigmas or not all(0 < s < math.inf for s in sigmas):
            raise InputError(f"sigma must be one or several numbers above 0, got {sigma}")
        shares = [s**2 for s in sigmas] if weights is None else [float(w) for w in weights]
        if len(shares) != len(sigmas) or not all(0 < w < math.inf for w in shares):
            raise InputError(f"weights must be more than 0, one for each of {len(sigmas)} sigma, got {weights}")
        self.sigmas, self.shares = sigmas, shares
        factors = [w / s**2 for w, s in zip(shares, sigmas, strict=True)]
        self.factors = [factor * len(factors) / sum(factors) for factor in factors]

    def resolve(self, setting: Setting) -> "DenoisingScoreMatching":
        """The recipe with the default weights filled in."""
        return DenoisingScoreMatching(self.sigmas, self.shares)

    def loss(
        self,
        energy: nn.Module,
        x: Tensor,
        generator: torch.Generator | None = None,
        condition: Tensor | None = None,
    ) -> LossOutput:
        """The loss of a batch ``x`` ``(B, *event)``; ``energy_data`` are the energies of the noised data."""
        check_events(x)
        which = torch.randint(len(self.sigmas), x.shape[:1], generator=generator, device=x.device)
        sigma = x.new_tensor(self.sigmas)[which].view(-1, *[1] * (x.ndim - 1))
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        with torch.enable_grad(), power_iteration_held(energy):
            _, energies, score = energies_and_score(given(energy, condition), x + sigma * noise)
            errors = 0.5 * (sigma * score + noise).flatten(1).square().sum(1)
            value = (x.new_tensor(self.factors)[which] * errors).mean()
            return score_output(value, energies, score.flatten(1).square().sum(1))
