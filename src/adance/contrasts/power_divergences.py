"""Bregman generators whose weights are powers of the ratio."""

import math

from torch import Tensor

from adance.contrasts.bregman import log_mean_exp
from adance.contrasts.clipped import ClippedBregman
from adance.errors import InputError


class _PowerForm(ClippedBregman):
    """w(r) = e^{βr}: S0 = e^{(1+β)r}/(1+β), S1 = e^{βr}/β, and r in place of a power of 0."""

    beta: float
    curvature = 1.0

    @property
    def grows(self) -> tuple[bool, bool]:
        """By the signs of the exponents β of S1 and 1 + β of S0."""
        return min(self.beta, 1 + self.beta) < 0, max(self.beta, 1 + self.beta) > 0

    def exact_s0(self, r: Tensor) -> Tensor:
        """e^{(1+β)r}/(1+β)."""
        return _exp_over(1 + self.beta, r)

    def exact_s1(self, r: Tensor) -> Tensor:
        """e^{βr}/β."""
        return _exp_over(self.beta, r)

    def weight(self, r: Tensor) -> Tensor:
        """e^{βr}."""
        return (self.beta * r).exp()

    def log_z_offset(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The c at which the loss is flat, within the bounds: ``e^c = E_noise[e^{(1+β)r}]/E_data[e^{βr}]``."""
        (r_data, _), (r_noise, _) = self._bounded(r_data), self._bounded(r_noise)
        return log_mean_exp((1 + self.beta) * r_noise) - log_mean_exp(self.beta * r_data)


class KL(_PowerForm):
    """Ψ = u log u − u (UKL, KLIEP, NWJ): S0 = e^r, S1 = r.

    Its weight on data is 1 everywhere: the data's part of the gradient is that of the likelihood. For the arguments see
    :class:`ClippedBregman`.
    """

    beta, infimum = 0.0, 0.0


class LeastSquares(_PowerForm):
    """Ψ = u²/2 (LSIF): S0 = ½e^{2r}, S1 = e^r. Fits the ratio itself, so high ratios count most.

    For the arguments see :class:`ClippedBregman`.
    """

    beta, infimum = 1.0, 0.0


class Mahalanobis(LeastSquares):
    """Ψ = ½Σu², the squared Mahalanobis distance of the thesis; for a scalar ratio, Σ times least squares.

    Args:
        scale: Σ > 0.
        noises: Noise samples per datum.
        max_ratio: As for :class:`ClippedBregman`.
        ratio_bound: As for :class:`ClippedBregman`.
    """

    def __init__(
        self, scale: float = 1.0, noises: int = 1, max_ratio: float = 1e4, ratio_bound: float | None = None
    ) -> None:
        super().__init__(noises, max_ratio, ratio_bound)
        if not scale > 0:
            raise InputError(f"scale must be more than 0, got {scale}")
        self.scale = self.curvature = scale

    def exact_s0(self, r: Tensor) -> Tensor:
        """½Σe^{2r}."""
        return self.scale * super().exact_s0(r)

    def exact_s1(self, r: Tensor) -> Tensor:
        """Σe^r."""
        return self.scale * super().exact_s1(r)

    def weight(self, r: Tensor) -> Tensor:
        """Σe^r."""
        return self.scale * super().weight(r)


class ItakuraSaito(_PowerForm):
    """Ψ = −log u: S0 = r − 1, S1 = −e^{−r}. Low ratios count most; noise has the weight 1 everywhere.

    For the arguments see :class:`ClippedBregman`; there is no non-negative correction.
    """

    beta = -1.0

    def exact_s0(self, r: Tensor) -> Tensor:
        """The log-ratio minus 1."""
        return r - 1


class Hellinger(_PowerForm):
    """Ψ = −4√u, the exponential loss: S0 = 2e^{r/2}, S1 = −2e^{−r/2}. Data and noise grow alike; bounded below.

    For the arguments see :class:`ClippedBregman`.
    """

    beta, infimum = -0.5, 0.0


class Power(_PowerForm):
    """Ψ'' = u^{β−1}: S0 = expm1((1+β)r)/(1+β), S1 = expm1(βr)/β, and their limits at β = −1 and β = 0.

    Up to constants β = 1 is least squares, 0 KL, −½ Hellinger and −1 Itakura–Saito.

    Args:
        beta: β.
        noises: Noise samples per datum.
        max_ratio: As for :class:`ClippedBregman`.
        ratio_bound: As for :class:`ClippedBregman`; for β > −1.
    """

    def __init__(
        self, beta: float = 0.5, noises: int = 1, max_ratio: float = 1e4, ratio_bound: float | None = None
    ) -> None:
        self.beta = beta
        self.infimum = -1 / (1 + beta) if beta > -1 else None
        super().__init__(noises, max_ratio, ratio_bound)
        if not (1 + abs(beta)) * math.log(max_ratio) < 80:
            raise InputError(
                f"max_ratio={max_ratio:g} to the power of 1 + |beta| = {1 + abs(beta):g} overflows float32"
            )

    def exact_s0(self, r: Tensor) -> Tensor:
        """expm1((1+β)r)/(1+β)."""
        return _expm1_over(1 + self.beta, r)

    def exact_s1(self, r: Tensor) -> Tensor:
        """expm1(βr)/β."""
        return _expm1_over(self.beta, r)


def _exp_over(power: float, r: Tensor) -> Tensor:
    """``exp(power·r)/power``, and r at power 0."""
    return r if power == 0 else (power * r).exp() / power


def _expm1_over(power: float, r: Tensor) -> Tensor:
    """``expm1(power·r)/power``, and its limit r at power 0."""
    if power == 0:
        return r
    value = (power * r).exp()
    # torch computes the slope of expm1 as its value + 1, which cancels where it is small
    return (value + ((power * r).expm1() - value).detach()) / power
