"""A density ratio of two sets of rows."""

import importlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from adance.errors import InputError
from adance.sklearn.bridges import BridgeModel, fit_bridges
from adance.sklearn.budget import Budget
from adance.sklearn.inputs import generator_of, labeled_training_rows, rows_in_units


@dataclass(frozen=True)
class Estimate:
    """A number estimated from rows.

    Attributes:
        value: The estimate.
        error: Its standard error from the number of rows; the error of the fitted ratio is not in it.
    """

    value: float
    error: float


class DensityRatio(BaseEstimator):
    """Ratio of the densities of two sets of rows, ``p₁(x)/p₀(x)``, without the densities.

    A network distinguishes the sets; its log-odds are the logarithm of the ratio, regardless of how many rows each set
    has. It corrects a simple ratio, the best one on held-out rows: 1, that of a logistic regression, or that of two
    normal distributions. If the sets can be told apart almost perfectly, one network learns little more than that. Then
    the rows are mixed step by step from one set to the other, and the log-ratio is the sum over the steps (a
    telescope).

    Args:
        bridges: Number of steps between the sets; ``auto``: 1, or 4 if more than 99 % of the held-out pairs are in the
            right order.
        hidden: Widths of the network's hidden layers; by default (32, 32) up to 300 rows, else (128, 128).
        max_steps: Most optimizer steps; by default 80 up to 300 rows, else twice as many as rows, at most 4,000.
        random_state: Seed, or a ``numpy.random.RandomState``.

    Attributes:
        classes_: The two labels; the greater one is the numerator.
        n_bridges_: Number of steps between the sets.
        n_features_in_: Number of columns.
        feature_names_in_: Their names, if the table has names.
    """

    def __init__(
        self,
        *,
        bridges: int | str = "auto",
        hidden: Sequence[int] | None = None,
        max_steps: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.bridges = bridges
        self.hidden = hidden
        self.max_steps = max_steps
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any) -> "DensityRatio":
        """Fit to rows ``X`` ``(N, D)`` of both sets, with two labels ``y`` ``(N,)``.

        Warns if the ranges of the two sets in a column do not overlap.

        Raises:
            ValueError: ``y`` does not have exactly two labels, each with at least 2 rows.
        """
        x, y = labeled_training_rows(self, X, y)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise InputError(_wrong_labels(len(self.classes_)))
        numerator = torch.as_tensor(labels == 1)
        fewest = int(min(numerator.sum(), (~numerator).sum()))
        if fewest < 2:
            raise InputError(f"each set needs at least 2 rows, got n_samples={fewest} of one label")
        budget = Budget.of(2 * fewest, self.hidden, self.max_steps)
        bridges = 0 if self.bridges == "auto" else int(self.bridges)
        self.model_: BridgeModel = fit_bridges(
            x[numerator], x[~numerator], budget, bridges, generator_of(self.random_state)
        )
        self.n_bridges_ = len(self.model_.energies)
        self._warn_of_no_overlap(x[numerator], x[~numerator])
        return self

    def fit_pair(self, numerator: Any, denominator: Any) -> "DensityRatio":
        """Fit to two tables ``(N₁, D)`` and ``(N₀, D)`` with the same columns.

        Raises:
            InputError: The tables have different numbers of columns, or are data frames with different column names.
        """
        shapes = [np.shape(table) for table in (numerator, denominator)]
        if shapes[0][1:] != shapes[1][1:]:
            raise InputError(f"the two tables must have the same columns, got shapes {shapes[0]} and {shapes[1]}")
        frames = hasattr(numerator, "iloc") and hasattr(denominator, "iloc")
        if frames and len(missing := numerator.columns.difference(denominator.columns)) > 0:
            names = ", ".join(map(str, missing))
            raise InputError(f"the two tables must have the same columns: the denominator lacks {names}")
        join = importlib.import_module("pandas").concat if frames else np.concatenate
        return self.fit(join([numerator, denominator]), np.repeat([1, 0], [len(numerator), len(denominator)]))

    def _warn_of_no_overlap(self, one: Tensor, zero: Tensor) -> None:
        apart = (one.amin(0) > zero.amax(0)) | (one.amax(0) < zero.amin(0))
        if apart.any():
            column = int(apart.nonzero()[0])
            name = getattr(self, "feature_names_in_", range(len(apart)))[column]
            warnings.warn(
                f"the two sets do not overlap in column {name}, so the size of the log-ratios is arbitrary",
                ConvergenceWarning,
                stacklevel=3,
            )

    def log_ratio(self, X: Any) -> NDArray[np.float64]:
        """``log p₁(x)/p₀(x)`` ``(N,)`` of rows ``X`` ``(N, D)``."""
        check_is_fitted(self)
        return self.model_.log_ratio(rows_in_units(self, X, self.model_.units)).numpy()

    def predict(self, X: Any) -> NDArray[np.float64]:
        """``p₁(x)/p₀(x)`` ``(N,)`` of rows ``X`` ``(N, D)``."""
        return np.exp(self.log_ratio(X))

    def weights(self, X: Any, clip: float = 0.99) -> NDArray[np.float64]:
        """Importance weights ``(N,)`` of rows ``X`` ``(N, D)`` of the denominator, with mean 1.

        Args:
            X: The rows.
            clip: Quantile of the ratios at which they are clipped; 1 for no clipping.
        """
        log_ratio = self.log_ratio(X)
        ratio = np.exp(log_ratio - log_ratio.max())
        ratio = np.minimum(ratio, np.quantile(ratio, clip))
        return ratio / ratio.mean()  # type: ignore[no-any-return]

    def effective_sample_size(self, X: Any, clip: float = 0.99) -> float:
        """``(Σw)²/Σw²`` of the :meth:`weights` of rows ``X`` ``(N, D)``, between 1 and N."""
        weights = self.weights(X, clip)
        return float(weights.sum() ** 2 / (weights**2).sum())

    def divergences(self, X: Any, y: Any) -> dict[str, Estimate]:
        """Divergences of the sets on rows ``X`` ``(N, D)`` with labels ``y`` ``(N,)``, in nats.

        Use rows that were not in the fit, or they are too large.

        Returns:
            ``kl``: KL(p₁ ‖ p₀); ``reverse_kl``: KL(p₀ ‖ p₁); ``jensen_shannon``, of equal shares, at most log 2;
            ``total_variation``, at most 1. The last two are lower bounds, up to their errors.
        """
        log_ratio, y = self.log_ratio(X), np.asarray(y)
        one, zero = (log_ratio[y == label] for label in self.classes_[::-1])
        if min(len(one), len(zero)) < 2:
            raise InputError("divergences need at least 2 rows with each of the two labels")
        return {
            "kl": _sum_of_means(one),
            "reverse_kl": _sum_of_means(-zero),
            "jensen_shannon": _sum_of_means(_half_shannon(one), _half_shannon(-zero)),
            "total_variation": _sum_of_means(np.sign(one) / 2, -np.sign(zero) / 2),
        }


def _half_shannon(r: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.log(2) - np.logaddexp(0, -r)) / 2


def _sum_of_means(*parts: NDArray[np.float64]) -> Estimate:
    variance = sum(part.var(ddof=1) / len(part) for part in parts)
    return Estimate(float(sum(part.mean() for part in parts)), float(np.sqrt(variance)))


def _wrong_labels(n: int) -> str:
    if n < 2:
        return f"y must have two labels, one for each set, got {n} class"
    return f"Only binary classification is supported: y must have two labels, one for each set, got {n}"
