"""Bregman ratio matching in log-ratio form (thesis 4.4 to 4.8).

With u = p̃_θ/p_n, r = log u and a convex Ψ: loss = E_noise[S0(r)] − E_data[S1(r)], S1 = Ψ'(u), S0 = uΨ'(u) − Ψ(u),
whose derivatives satisfy dS0/dS1 = u. The data's gradient has the weight w(r) = uΨ''(u), the noise's w(r)·u.
"""

import math
from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn.functional import softplus

from adance.contrasts.contrast import Contrast, hinge


class Bregman(Contrast):
    """A convex Ψ, given by S0 and S1 as functions of r; its ``curvature`` is Ψ''(1)."""

    @abstractmethod
    def s0(self, r: Tensor) -> Tensor:
        """S0(r), of the shape of ``r``."""

    @abstractmethod
    def s1(self, r: Tensor) -> Tensor:
        """S1(r), of the shape of ``r``."""

    def log_z_offset(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The c that minimizes the loss of ``r − c``; by default ``log E_noise[e^r]``, the estimate of log(Z_θ/Z_n)."""
        return log_mean_exp(r_noise)

    def __call__(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The textbook loss, one number, from log-ratios on data ``(B,)`` and on noise ``(B, M)``."""
        return self.s0(r_noise).mean() - self.s1(r_data).mean()


def log_mean_exp(x: Tensor) -> Tensor:
    """``log mean e^x`` over all of ``x``."""
    return x.flatten().logsumexp(0) - math.log(x.numel())


class Logistic(Bregman):
    """Binary noise-contrastive estimation with ν noises per datum (thesis 2.13, in log space).

    Ψ(u) = u log u − (ν + u) log(ν + u) + const, so S1 = −softplus(log ν − r), S0 = ν softplus(r − log ν).

    Args:
        noises: ν ≥ 1.
    """

    bounded_weights = True

    def __init__(self, noises: int = 1) -> None:
        super().__init__(noises)
        self.curvature = noises / (1 + noises)

    def s0(self, r: Tensor) -> Tensor:
        """ν softplus(r − log ν)."""
        return self.noises * softplus(r - math.log(self.noises))

    def s1(self, r: Tensor) -> Tensor:
        """−softplus(log ν − r)."""
        return -softplus(math.log(self.noises) - r)

    def log_z_offset(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The c at which data and noise balance: ``E_data[σ(log ν − r + c)] = ν E_noise[σ(r − c − log ν)]``.

        The left side rises with c and the right side falls, and they cross between the smallest and the largest r. Each
        round narrows that range to a 64th, down to the precision of float32.
        """
        low, high = torch.aminmax(torch.cat([r_data.flatten(), r_noise.flatten()]))
        shares, log_nu = torch.linspace(0, 1, 65, dtype=low.dtype, device=low.device)[:, None], math.log(self.noises)
        for _ in range(4):
            c = low + (high - low) * shares
            data = (c + log_nu - r_data.flatten()).sigmoid().mean(1)
            noise = self.noises * (r_noise.flatten() - c - log_nu).sigmoid().mean(1)
            place = (data < noise).sum().clamp(1, 64)
            low, high = c[place - 1, 0], c[place, 0]
        return (low + high) / 2

    def mean_data_weight(self, r_data: Tensor) -> Tensor:
        """Mean of σ(log ν − r)."""
        return (math.log(self.noises) - r_data).sigmoid().mean()

    def zero_temperature_loss(self, d_data: Tensor, d_noise: Tensor) -> Tensor:
        """The hinge, with the logistic slopes at 0 (½ at ν = 1): a step from r = 0 is that of the likelihood."""
        share = 1 / (1 + self.noises)
        return self.noises * hinge(d_noise, share).mean() + hinge(-d_data, 1 - share).mean()
