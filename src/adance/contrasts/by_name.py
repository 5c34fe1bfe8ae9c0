"""Bregman generators by name."""

from typing import Literal

from adance.contrasts.bregman import Bregman, Logistic
from adance.contrasts.power_divergences import KL, Hellinger, ItakuraSaito, LeastSquares, Mahalanobis
from adance.errors import InputError

Psi = Literal["logistic", "kl", "least_squares", "mahalanobis", "itakura_saito", "hellinger"]

_NAMED: dict[str, type[Bregman]] = {
    "logistic": Logistic,
    "kl": KL,
    "least_squares": LeastSquares,
    "mahalanobis": Mahalanobis,
    "itakura_saito": ItakuraSaito,
    "hellinger": Hellinger,
}


def named_bregman(psi: Psi | Bregman, noises: int) -> Bregman:
    """The generator named ``psi`` with ``noises`` noise samples per datum; a Bregman object is returned as it is.

    Raises:
        InputError: ``psi`` is unknown.
    """
    if isinstance(psi, Bregman):
        return psi
    if psi not in _NAMED:
        raise InputError(f"unknown psi {psi!r}: use one of {', '.join(_NAMED)}, or a Bregman object")
    return _NAMED[psi](noises=noises)
