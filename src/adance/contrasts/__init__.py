"""Contrasts: what turns log-ratios on data and on noise into a loss."""

from adance.contrasts.balanced import Balanced
from adance.contrasts.bregman import Bregman, Logistic
from adance.contrasts.by_name import Psi, named_bregman
from adance.contrasts.clipped import ClippedBregman
from adance.contrasts.conditional import Conditional
from adance.contrasts.contrast import Contrast
from adance.contrasts.custom import Custom
from adance.contrasts.linear import Linear
from adance.contrasts.power_divergences import KL, Hellinger, ItakuraSaito, LeastSquares, Mahalanobis, Power
from adance.contrasts.ranking import Ranking
from adance.contrasts.ranking_or_none import RankingOrNone

__all__ = [
    "KL",
    "Balanced",
    "Bregman",
    "ClippedBregman",
    "Conditional",
    "Contrast",
    "Custom",
    "Hellinger",
    "ItakuraSaito",
    "LeastSquares",
    "Linear",
    "Logistic",
    "Mahalanobis",
    "Power",
    "Psi",
    "Ranking",
    "RankingOrNone",
    "named_bregman",
]
