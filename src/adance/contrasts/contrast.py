"""The base class of contrasts: log-ratios on data and on noise become a loss."""

from abc import ABC, abstractmethod

from torch import Tensor

from adance.configurable import Configurable
from adance.errors import InputError
from adance.numbers import is_whole


class Contrast(Configurable, ABC):
    """A loss of log-ratios ``r(x) = log p̃_θ(x) − log p̃_n(x)``.

    Args:
        noises: Noise samples for each datum.

    Raises:
        InputError: ``noises`` is no whole number of at least 1.
    """

    noises: int = 1
    """Noise samples for each datum."""

    curvature: float
    """Ratio of the loss's gradient at r = 0 to that of the likelihood."""

    bounded_weights: bool = False
    """Whether the weights of data and noise stay bounded for every r, so that ``zero_temperature_loss`` exists and r
    may be formed at a chain's own, small temperature."""

    ignores_constant: bool = False
    """Whether a constant added to every r changes nothing: then log Z cannot be learned, and need not be known."""

    ignores_noise_energy: bool = False
    """Whether the gradient does not depend on the noise's energy: then it is not computed, and r is −E."""

    def __init__(self, noises: int = 1) -> None:
        if not (is_whole(noises) and noises >= 1):
            raise InputError(f"{type(self).__name__} needs at least one noise sample per datum, got noises={noises!r}")
        self.noises = noises

    @abstractmethod
    def __call__(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The textbook loss, one number, from log-ratios on data ``(B,)`` and on noise ``(B, M)``."""

    def log_z_offset(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The c, one number, that minimizes the loss of ``r − c``: an estimate of the missing log(Z_θ/Z_n).

        Raises:
            InputError: The contrast cannot fit a constant.
        """
        raise InputError(f"{type(self).__name__} cannot fit the constant of the log-ratio: set center=False")

    def mean_data_weight(self, r_data: Tensor) -> Tensor:
        """The mean weight of data in the gradient, from their log-ratios ``(B,)``: how much there is left to learn.

        Raises:
            InputError: The contrast's weights do not fall with r.
        """
        raise InputError(f"{type(self).__name__} has no bounded weights: set interval to a number instead of 'auto'")

    def zero_temperature_loss(self, d_data: Tensor, d_noise: Tensor) -> Tensor:
        """The limit of ``T·loss(d/T)`` as T → 0, from energy differences d on data ``(B,)`` and on noise ``(B, M)``.

        Raises:
            InputError: The limit does not exist.
        """
        raise InputError(f"{type(self).__name__} has no limit at ratio temperature 0: set ratio_temperature > 0")


def hinge(d: Tensor, slope: float = 0.5) -> Tensor:
    """``max(d, 0)``, with the gradient ``slope`` at 0."""
    return slope * (d + d.abs()) + (1 - 2 * slope) * d.relu()
