"""Losses that grow like a power of the ratio, kept from overflowing and from falling without bound."""

import math
from abc import abstractmethod

from torch import Tensor

from adance.contrasts.bregman import Bregman
from adance.distributed import mean_over_ranks
from adance.errors import InputError


class ClippedBregman(Bregman):
    """A Ψ whose weights grow with the ratio or its inverse, kept from overflowing.

    Where u or 1/u exceeds ``max_ratio``, on the side where an exponent could overflow, S0 and S1 continue linearly in r
    with the slopes they have there: the ratio of the slopes is then ``max_ratio``, and no slope is 0.

    Where S1 grows without bound (KL, least squares, powers β ≥ 0) the loss has no lower bound on finite data: a
    flexible energy can increase r on the data alone. ``ratio_bound`` B, a bound known for p_data/p_n, turns on the
    correction of Kato & Teshima (2021): with C = 1/B the density p_n − C·p_data is nowhere negative, so the part
    E_noise[S0] − C·E_data[S0] of the loss, minus the infimum of S0, cannot be negative either, and is clipped at 0.

    Args:
        noises: Noise samples per datum; they only lower the variance.
        max_ratio: The bound beyond which the loss is linear in r. Estimates are biased where the true ratio exceeds it.
        ratio_bound: B, for the non-negative correction; by default there is no correction.

    Raises:
        InputError: ``noises`` is below 1, ``max_ratio`` not above 1, ``ratio_bound`` below 1 or not below
            ``max_ratio``, or given for a Ψ without a correction.
    """

    infimum: float | None = None
    """The infimum of S0, if it has one."""

    def __init__(self, noises: int = 1, max_ratio: float = 1e4, ratio_bound: float | None = None) -> None:
        super().__init__(noises)
        if not max_ratio > 1:
            raise InputError(f"max_ratio must be more than 1, got {max_ratio}")
        if ratio_bound is not None and self.infimum is None:
            raise InputError(f"{type(self).__name__} has no non-negative correction: leave ratio_bound out")
        if ratio_bound is not None and not 1 <= ratio_bound < max_ratio:
            raise InputError(f"ratio_bound must be at least 1 and below max_ratio={max_ratio}, got {ratio_bound}")
        self.max_ratio, self.ratio_bound = max_ratio, ratio_bound

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
        inside, edge = self._bounded(r)
        return self.exact_s0(inside) + (self.weight(edge) * edge.exp()).detach() * (r - inside)

    def s1(self, r: Tensor) -> Tensor:
        """S1(r), linear beyond the bound."""
        inside, edge = self._bounded(r)
        return self.exact_s1(inside) + self.weight(edge).detach() * (r - inside)

    def log_z_offset(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """``log E_noise[e^r]``, within the bounds."""
        return super().log_z_offset(r_data, self._bounded(r_noise)[0])

    def __call__(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The textbook loss, or the corrected one, from log-ratios on data ``(B,)`` and on noise ``(B, M)``."""
        if self.ratio_bound is None:
            return super().__call__(r_data, r_noise)
        assert self.infimum is not None
        share = 1 / self.ratio_bound
        s0_data, constant = self.s0(r_data).mean(), (1 - share) * self.infimum
        cannot_be_negative = mean_over_ranks(self.s0(r_noise).mean() - share * s0_data - constant)
        return share * s0_data - self.s1(r_data).mean() + cannot_be_negative.relu() + constant

    def _bounded(self, r: Tensor) -> tuple[Tensor, Tensor]:
        """``r`` clipped to the bounds that apply, and to both bounds."""
        bound, (low, high) = math.log(self.max_ratio), self.grows
        return r.clamp(-bound if low else -math.inf, bound if high else math.inf), r.detach().clamp(-bound, bound)
