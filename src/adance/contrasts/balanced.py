"""Binary noise-contrastive estimation with a balanced classifier."""

import math

from torch import Tensor

from adance.contrasts.bregman import Logistic
from adance.distributed import mean_over_ranks
from adance.numbers import check_real


class Balanced(Logistic):
    """The logistic contrast with a penalty against overconfidence (Delaunoy et al. 2022).

    With the classifier ``d(x) = σ(r(x) − log ν)`` the penalty is ``λ (E_data[d] + ν E_noise[d] − 1)²``, which is 0 for
    the exact r. Posteriors of a simulator (NRE-A with this contrast is BNRE) then tend to be too wide rather than too
    narrow. A fitted constant c already balances the classifier, so that the penalty has no effect.

    Args:
        noises: ν ≥ 1.
        strength: λ ≥ 0. Delaunoy et al. use 100.

    Raises:
        InputError: ``noises`` is below 1, or ``strength`` is below 0 or not finite.
    """

    def __init__(self, noises: int = 1, strength: float = 100.0) -> None:
        super().__init__(noises)
        check_real("strength", strength, 0)
        self.strength = strength

    def __call__(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The logistic loss and the penalty, from log-ratios on data ``(B,)`` and on noise ``(B, M)``."""
        log_nu = math.log(self.noises)
        on_data, on_noise = (r_data - log_nu).sigmoid().mean(), (r_noise - log_nu).sigmoid().mean()
        excess = mean_over_ranks(on_data + self.noises * on_noise) - 1
        return super().__call__(r_data, r_noise) + self.strength * excess.square()
