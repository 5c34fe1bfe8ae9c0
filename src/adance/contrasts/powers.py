"""Bregman generators whose weights grow like powers of the ratio, bounded where they would overflow."""

import math
from abc import abstractmethod

from torch import Tensor

from adance.contrasts.bregman import Bregman
from adance.contrasts.contrast import check_noises
from adance.errors import InputError


class Growing(Bregman):
    """A Ψ whose weights grow with the ratio or its inverse, kept from overflowing.

    Where u or 1/u exceeds ``max_ratio``, on the side where an exponent could overflow, S0 and S1 go on linearly in r
    with the slopes they have there: their ratio is then ``max_ratio``, and never is a slope 0.

    Where S1 grows without bound (KL, least squares, powers β ≥ 0) the loss has no lower bound on finite data: a
    flexible energy can let r grow on the data alone. ``ratio_bound`` B, a bound known for p_data/p_n, turns on the
    correction of Kato & Teshima (2021): with C = 1/B the density p_n − C·p_data is nowhere negative, so the part
    E_noise[S0] − C·E_data[S0] of the loss, less the infimum of S0, cannot be either, and is clipped at 0.

    Args:
        noises: Noise samples per datum; they only lower the variance.
        max_ratio: The bound beyond which the loss is linear in r. Where the true ratio lies beyond it, estimates are
            biased.
        ratio_bound: B, for the non-negative correction; none by default.

    Raises:
        InputError: A number is out of range, or the correction does not apply to this Ψ.
    """

    infimum: float | None = None
    """The infimum of S0, where it has one."""

    def __init__(self, noises: int = 1, max_ratio: float = 1e4, ratio_bound: float | None = None) -> None:
        check_noises(self, noises)
        if not max_ratio > 1:
            raise InputError(f"max_ratio must be more than 1, got {max_ratio}")
        if ratio_bound is not None and self.infimum is None:
            raise InputError(f"{type(self).__name__} has no non-negative correction: its S0 has no lower bound")
        if ratio_bound is not None and not 1 <= ratio_bound < max_ratio:
            raise InputError(f"ratio_bound must be at least 1 and less than max_ratio {max_ratio}, got {ratio_bound}")
        self.noises, self.max_ratio, self.ratio_bound = noises, max_ratio, ratio_bound

    @property
    def grows(self) -> tuple[bool, bool]:
        """Whether S0 or S1 grows exponentially as r → −∞, and as r → ∞."""
        return True, True

    @abstractmethod
    def exact_s0(self, r: Tensor) -> Tensor:
        """S0(r) without the bound."""

    @abstractmethod
    def exact_s1(self, r: Tensor) -> Tensor:
        """S1(r) without the bound."""

    @abstractmethod
    def weight(self, r: Tensor) -> Tensor:
        """w(r) = dS1/dr without the bound."""

    def s0(self, r: Tensor) -> Tensor:
        """S0(r), linear beyond the bound."""
        inside = self._bounded(r)
        return self.exact_s0(inside) + (self.weight(inside) * inside.exp()).detach() * (r - inside)

    def s1(self, r: Tensor) -> Tensor:
        """S1(r), linear beyond the bound."""
        inside = self._bounded(r)
        return self.exact_s1(inside) + self.weight(inside).detach() * (r - inside)

    def __call__(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The textbook loss, or the corrected one, from log-ratios on data ``(B,)`` and on noise ``(B, M)``."""
        if self.ratio_bound is None:
            return super().__call__(r_data, r_noise)
        assert self.infimum is not None
        share = 1 / self.ratio_bound
        s0_data, constant = self.s0(r_data).mean(), (1 - share) * self.infimum
        cannot_be_negative = self.s0(r_noise).mean() - share * s0_data - constant
        return share * s0_data - self.s1(r_data).mean() + cannot_be_negative.relu() + constant

    def _bounded(self, r: Tensor) -> Tensor:
        bound = math.log(self.max_ratio)
        low, high = self.grows
        return r.clamp(-bound if low else None, bound if high else None) if low or high else r


class _PowerForm(Growing):
    """w(r) = e^{βr}."""

    beta: float

    @property
    def curvature(self) -> float:
        """Ψ''(1) = 1."""
        return 1.0

    @property
    def grows(self) -> tuple[bool, bool]:
        """By the signs of the exponents β of S1 and 1 + β of S0."""
        return min(self.beta, 1 + self.beta) < 0, max(self.beta, 1 + self.beta) > 0

    def weight(self, r: Tensor) -> Tensor:
        """e^{βr}."""
        return (self.beta * r).exp()


class KL(_PowerForm):
    """Ψ = u log u − u (UKL, KLIEP, NWJ): S0 = e^r, S1 = r.

    Its weight on data is 1 everywhere: the data's part of the gradient is the likelihood's. The arguments are
    :class:`Growing`'s.
    """

    beta, infimum = 0.0, 0.0

    def exact_s0(self, r: Tensor) -> Tensor:
        """e^r."""
        return r.exp()

    def exact_s1(self, r: Tensor) -> Tensor:
        """The log-ratio itself."""
        return r


class LeastSquares(_PowerForm):
    """Ψ = u²/2 (LSIF): S0 = ½e^{2r}, S1 = e^r. Fits the ratio itself, so high ratios count most.

    The arguments are :class:`Growing`'s.
    """

    beta, infimum = 1.0, 0.0

    def exact_s0(self, r: Tensor) -> Tensor:
        """½e^{2r}."""
        return 0.5 * (2 * r).exp()

    def exact_s1(self, r: Tensor) -> Tensor:
        """e^r."""
        return r.exp()


class Mahalanobis(LeastSquares):
    """Ψ = ½Σu², the squared Mahalanobis distance of the thesis; for a scalar ratio, Σ times least squares.

    Args:
        scale: Σ > 0.
        noises: Noise samples per datum.
        max_ratio: As for :class:`Growing`.
        ratio_bound: As for :class:`Growing`.
    """

    def __init__(
        self, scale: float = 1.0, noises: int = 1, max_ratio: float = 1e4, ratio_bound: float | None = None
    ) -> None:
        super().__init__(noises, max_ratio, ratio_bound)
        if not scale > 0:
            raise InputError(f"scale must be more than 0, got {scale}")
        self.scale = scale

    @property
    def curvature(self) -> float:
        """Ψ''(1) = Σ."""
        return self.scale

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

    The arguments are :class:`Growing`'s; there is no non-negative correction.
    """

    beta = -1.0

    def exact_s0(self, r: Tensor) -> Tensor:
        """The log-ratio less 1."""
        return r - 1

    def exact_s1(self, r: Tensor) -> Tensor:
        """−e^{−r}."""
        return -(-r).exp()


class Hellinger(_PowerForm):
    """Ψ = −4√u, the exponential loss: S0 = 2e^{r/2}, S1 = −2e^{−r/2}. Data and noise grow alike; bounded below.

    The arguments are :class:`Growing`'s.
    """

    beta, infimum = -0.5, 0.0

    def exact_s0(self, r: Tensor) -> Tensor:
        """2e^{r/2}."""
        return 2 * (0.5 * r).exp()

    def exact_s1(self, r: Tensor) -> Tensor:
        """−2e^{−r/2}."""
        return -2 * (-0.5 * r).exp()


class Power(_PowerForm):
    """Ψ'' = u^{β−1}: S0 = expm1((1+β)r)/(1+β), S1 = expm1(βr)/β, and their limits at β = −1 and β = 0.

    Up to constants β = 1 is least squares, 0 KL, −½ Hellinger and −1 Itakura–Saito.

    Args:
        beta: β.
        noises: Noise samples per datum.
        max_ratio: As for :class:`Growing`.
        ratio_bound: As for :class:`Growing`; for β > −1.
    """

    def __init__(
        self, beta: float = 0.5, noises: int = 1, max_ratio: float = 1e4, ratio_bound: float | None = None
    ) -> None:
        self.beta = beta
        self.infimum = -1 / (1 + beta) if beta > -1 else None
        super().__init__(noises, max_ratio, ratio_bound)
        if not (1 + abs(beta)) * math.log(max_ratio) < 80:
            raise InputError(
                f"max_ratio {max_ratio:g} to the power of 1 + |beta| = {1 + abs(beta):g} overflows float32"
            )

    def exact_s0(self, r: Tensor) -> Tensor:
        """expm1((1+β)r)/(1+β)."""
        return _expm1_over(1 + self.beta, r)

    def exact_s1(self, r: Tensor) -> Tensor:
        """expm1(βr)/β."""
        return _expm1_over(self.beta, r)


def _expm1_over(power: float, r: Tensor) -> Tensor:
    """``expm1(power·r)/power``, and its limit r at power 0."""
    return r if power == 0 else (power * r).expm1() / power
