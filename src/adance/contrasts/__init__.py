"""Contrasts: what turns log-ratios on data and on noise into a loss."""

from adance.contrasts.bregman import Bregman, Logistic

__all__ = ["Bregman", "Logistic"]
