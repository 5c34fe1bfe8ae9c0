"""An outlier detector."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from adance.data.transforms import Standardize
from adance.errors import InputError
from adance.sklearn.budget import Budget
from adance.sklearn.explain import REFERENCES, Explanation, shapley_values
from adance.sklearn.inputs import generator_of, rows_in_units, training_rows
from adance.sklearn.model import TableModel, fit_model
from adance.sklearn.rows import TableRows, resolution
from adance.sklearn.trimming import concentrate, most_likely, rows_to_keep

AUTO_SHARE = 0.05
"""Share of the training rows below the threshold with ``contamination="auto"``."""

TRIMMED_NOISE = "student"
"""The base if rows are dropped: a smooth one, since others follow small groups of outliers among the training rows."""

TRIMMED_STEPS = 250
"""Most optimizer steps of each of the two fits if rows are dropped."""


class EnergyOutlierDetector(OutlierMixin, BaseEstimator):
    """Finds the rows of a table that are unlikely under a density of the training rows.

    The density is a base corrected by a bounded network, as in :class:`EnergyDensity`. Scores are log-densities: low
    for outliers.

    Args:
        contamination: The share of outliers among the training rows, in (0, 0.5]; 0.5 if you do not know it. This
            share of the rows is dropped before a first fit (those far from a dense ellipsoid). After it, the same share
            of all rows is dropped again (the least likely ones), and the density is fitted to the rest. It is also the
            share below the threshold. ``auto``: training rows are normal, and one in 20 is below the threshold.
        noise: The base of the density, as in :class:`EnergyDensity` except for ``auto``. With a ``contamination``,
            ``auto`` is ``student``. Otherwise it is ``student`` or ``cover``, for more than 64 columns ``student`` or
            ``kde``, whichever is better on held-out rows.
        hidden: Widths of the network's hidden layers; by default (32, 32) up to 300 rows, else (128, 128).
        max_steps: Most optimizer steps; by default 80 up to 300 rows, else twice as many as rows, at most 4,000, and
            with a ``contamination`` at most 250.
        warm_start: Continue the previous fit, in its units and with its base.
        random_state: Seed, or a ``numpy.random.RandomState``.

    Attributes:
        offset_: The threshold: the score below which a row is an outlier.
        n_features_in_: Number of columns.
        feature_names_in_: Their names, if the table has names.
        n_iter_: Optimizer steps of the last fit.
    """

    def __init__(
        self,
        *,
        contamination: float | str = "auto",
        noise: str = "auto",
        hidden: Sequence[int] | None = None,
        max_steps: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.contamination = contamination
        self.noise = noise
        self.hidden = hidden
        self.max_steps = max_steps
        self.warm_start = warm_start
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "EnergyOutlierDetector":
        """Fit to rows ``X`` ``(N, D)``; ``y`` is not used.

        Raises:
            InputError: ``contamination`` is neither ``auto`` nor in (0, 0.5].
        """
        share = _share_of(self.contamination)
        x, generator = training_rows(self, X), generator_of(self.random_state)
        start = getattr(self, "model_", None) if self.warm_start else None
        kept = None if share is None else self._dense_rows(x, rows_to_keep(len(x), x.shape[1], share))
        self._fit(x, generator, start, kept)
        if kept is not None:
            self._fit(x, generator, start, most_likely(self._scores(x), len(kept)))
        self.n_iter_ = self.model_.history.steps
        self.offset_ = float(np.quantile(self._scores(x).numpy(), AUTO_SHARE if share is None else share))
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log-densities ``(N,)`` of rows ``X`` ``(N, D)``: the lower, the more abnormal."""
        check_is_fitted(self)
        return self.model_.log_density(rows_in_units(self, X, self.model_.units)).numpy()

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores less the threshold ``(N,)`` of rows ``X`` ``(N, D)``: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """−1 for outliers, 1 for other rows ``(N,)`` of ``X`` ``(N, D)``."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def explain(self, X: Any, random_state: Any = None) -> Explanation:
        """Which columns make rows ``X`` ``(N, D)`` unlikely: Shapley values of the score of each row.

        Each row is compared with the 20 nearest of 500 rows drawn from the density. This takes 40·(D + 1) evaluations
        of a row's score.

        Args:
            X: The rows.
            random_state: Seed, or a ``numpy.random.RandomState``.
        """
        check_is_fitted(self)
        x, generator = rows_in_units(self, X, self.model_.units), generator_of(random_state)
        likely = self.model_.sample(REFERENCES, generator)
        parts, reference = shapley_values(self.model_.log_density, x, likely, generator)
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(x.shape[1])])
        return Explanation(parts.numpy(), reference.numpy(), tuple(map(str, names)))

    def _fit(self, x: Tensor, generator: torch.Generator, start: TableModel | None, kept: Tensor | None) -> None:
        rows = TableRows.of(x, generator, units=None if start is None else start.units, kept=kept)
        if kept is None:
            noise, budget = self.noise, Budget.of(len(x), self.hidden, self.max_steps)
        else:
            noise = TRIMMED_NOISE if self.noise == "auto" else self.noise
            budget = Budget.of(len(kept), self.hidden, self.max_steps, TRIMMED_STEPS)
        self.model_ = fit_model(rows, budget, noise, generator, start=start)

    @staticmethod
    def _dense_rows(x: Tensor, keep: int) -> Tensor:
        standard = Standardize.fit(x).to_model(x)
        return concentrate(standard, resolution(standard), keep)

    def _scores(self, x: Tensor) -> Tensor:
        return self.model_.log_density(self.model_.units.to_model(x).double())


def _share_of(contamination: object) -> float | None:
    if isinstance(contamination, str) and contamination == "auto":
        return None
    if not (isinstance(contamination, Real) and 0 < float(contamination) <= 0.5):
        raise InputError(f"contamination must be 'auto' or a number in (0, 0.5], got {contamination!r}")
    return float(contamination)
