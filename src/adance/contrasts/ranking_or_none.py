"""Contrastive neural ratio estimation: which of K samples is the datum, if any?"""

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from adance.contrasts.contrast import Contrast
from adance.errors import InputError
from adance.numbers import check_real


class RankingOrNone(Contrast):
    """Ranking with one more class: all K samples are noise (NRE-C; Miller, Weniger and Forré 2022).

    The loss is ``−E[log(K / (K + γ Σₖ e^{rₖ}))]/(1 + γ)`` over sets of K noise samples, plus
    ``−E[log(γ e^{r₀} / (K + γ Σₖ e^{rₖ}))] γ/(1 + γ)`` over sets of a datum, whose r is r₀, and K − 1 noise samples.
    Unlike the loss of :class:`Ranking`, it does not ignore constants: its minimizer r is the log-ratio itself. For
    K = γ = 1 it is half the loss of :class:`Logistic`.

    Args:
        noises: K ≥ 1.
        odds: γ > 0, the prior odds that a set contains a datum. Miller et al. use 1.

    Raises:
        InputError: ``noises`` is below 1, or ``odds`` is not above 0 or not finite.
    """

    bounded_weights = True

    def __init__(self, noises: int = 10, odds: float = 1.0) -> None:
        super().__init__(noises)
        check_real("odds", odds)
        if odds <= 0:
            raise InputError(f"odds must be above 0, got {odds}")
        self.odds, self.share, self.rest = odds, odds / (1 + odds), 1 / (1 + odds)
        self.curvature = self.share * (noises - 1 + self.rest) / noises

    def __call__(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The loss from log-ratios on data ``(B,)`` and on noise ``(B, K)``."""
        log_share = math.log(self.noises / self.odds)
        none_of_them = torch.full_like(r_noise[:, :1], log_share)
        # r₀ is compared with log(K/γ + Σ e^r) over the other samples, so that the loss is 0 at r₀ = ∞
        others = torch.cat([none_of_them, r_noise[:, 1:]], 1).logsumexp(1)
        none = torch.cat([none_of_them, r_noise], 1).logsumexp(1) - log_share
        one = softplus(others - r_data)
        return self.rest * none.mean() + self.share * one.mean()

    def zero_temperature_loss(self, d_data: Tensor, d_noise: Tensor) -> Tensor:
        """Max-margin: by how much the best noise sample is above 0, and the best of all, or 0, is above the datum."""
        with_datum = torch.cat([d_data[:, None], d_noise[:, 1:]], 1)
        none, one = (d.amax(1).relu() for d in (d_noise, with_datum))
        return self.rest * none.mean() + self.share * (one - d_data).mean()
