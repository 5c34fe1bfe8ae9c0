"""The outlier detector with PyOD's interface."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from adance.errors import InputError
from adance.sklearn.outliers import EnergyOutlierDetector

try:
    from pyod.models.base import BaseDetector
except ModuleNotFoundError:
    BaseDetector = BaseEstimator  # this module can be imported, but PyODEnergy cannot be made


class PyODEnergy(BaseDetector):
    """:class:`EnergyOutlierDetector` as a detector of PyOD, whose scores are high for outliers.

    Args:
        contamination: The share of outliers among the training rows, in (0, 0.5]; in PyOD it only sets the threshold.
        dropped: The share of the training rows that is left out of the fit, in (0, 0.5], or ``auto`` for none: the
            ``contamination`` of :class:`EnergyOutlierDetector`.
        noise: As in :class:`EnergyOutlierDetector`.
        max_steps: As in :class:`EnergyOutlierDetector`.
        random_state: Seed, or a ``numpy.random.RandomState``.

    Attributes:
        decision_scores_: Scores ``(N,)`` of the training rows: minus their log-densities.
        threshold_: The score above which a row is an outlier.
        labels_: 1 for outliers among the training rows ``(N,)``, else 0.
        detector_: The fitted :class:`EnergyOutlierDetector`.

    Raises:
        InputError: PyOD is not installed.
    """

    def __init__(
        self,
        contamination: float = 0.1,
        *,
        dropped: float | str = 0.5,
        noise: str = "auto",
        max_steps: int | None = None,
        random_state: Any = None,
    ) -> None:
        if BaseDetector is BaseEstimator:
            raise InputError("PyODEnergy needs PyOD: pip install 'adance[pyod]'")
        super().__init__(contamination=contamination)
        self.dropped = dropped
        self.noise = noise
        self.max_steps = max_steps
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "PyODEnergy":
        """Fit to rows ``X`` ``(N, D)``; ``y`` is not used."""
        self._set_n_classes(y)
        self.detector_ = EnergyOutlierDetector(
            contamination=self.dropped, noise=self.noise, max_steps=self.max_steps, random_state=self.random_state
        ).fit(X)
        self.decision_scores_ = -self.detector_.score_samples(X)
        self._process_decision_scores()
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Minus log-densities ``(N,)`` of rows ``X`` ``(N, D)``: the higher, the more abnormal."""
        check_is_fitted(self, ["decision_scores_", "threshold_", "labels_"])
        return -self.detector_.score_samples(X)
