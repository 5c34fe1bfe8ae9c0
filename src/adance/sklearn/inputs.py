"""What estimators do with their arguments: rows become tensors, ``random_state`` a generator."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from torch import Tensor

from adance.data.transforms import Standardize
from adance.errors import InputError

FEWEST_ROWS = 3
"""Two rows to fit the base to, and one held-out row."""


def training_rows(estimator: Any, X: Any) -> Tensor:
    """Checked training rows ``(N, D)``, float64."""
    return torch.tensor(validate_data(estimator, X, dtype=np.float64, ensure_min_samples=FEWEST_ROWS))


def labeled_training_rows(estimator: Any, X: Any, y: Any) -> tuple[Tensor, NDArray[Any]]:
    """Checked training rows ``(N, D)``, float64, and their labels ``(N,)``."""
    X, y = validate_data(estimator, X, y, dtype=np.float64, ensure_min_samples=FEWEST_ROWS)
    return torch.tensor(X), y


def rows_in_units(estimator: Any, X: Any, units: Standardize) -> Tensor:
    """Checked rows ``(N, D)`` of a fitted estimator in model units, float64.

    Raises:
        InputError: A row is too far from the training rows to be standardized.
    """
    x = units.to_model(torch.tensor(validate_data(estimator, X, dtype=np.float64, reset=False))).double()
    finite = x.isfinite().all(1)
    if not finite.all():
        row = int(finite.logical_not().nonzero()[0])
        raise InputError(f"row {row} of X is not finite after it is standardized by the training rows")
    return x


def generator_of(random_state: Any) -> torch.Generator:
    """A generator seeded by scikit-learn's ``random_state``."""
    return torch.Generator().manual_seed(int(check_random_state(random_state).randint(2**31 - 1)))
