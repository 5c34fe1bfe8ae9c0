"""Trimming keeps the rows of a dense ellipsoid."""

import numpy as np
import pytest
import torch
from sklearn.covariance import MinCovDet

from adance.sklearn.trimming import concentrate, most_likely, rows_to_keep


@pytest.mark.parametrize(
    ("n", "columns", "contamination", "kept"),
    [(100, 3, 0.1, 90), (100, 3, 0.5, 52), (100, 300, 0.5, 100), (2, 1, 0.5, 2), (101, 1, 0.3, 71)],
)
def test_enough_rows_are_kept(n: int, columns: int, contamination: float, kept: int) -> None:
    assert rows_to_keep(n, columns, contamination) == kept


def test_the_most_likely_rows_stay_in_order() -> None:
    assert most_likely(torch.tensor([0.5, -3.0, 2.0, 1.0]), 3).tolist() == [0, 2, 3]


def test_the_rows_are_those_of_the_minimum_covariance_determinant() -> None:
    rng = np.random.default_rng(0)
    factor = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 0.3]])
    x = np.r_[rng.normal(size=(400, 3)) @ factor.T, rng.normal(0, 0.1, (100, 3)) + [4, -4, 2]]
    kept = concentrate(torch.tensor(x), torch.zeros(3), 252)
    assert kept.max() < 400
    support = np.flatnonzero(MinCovDet(support_fraction=252 / 500, random_state=0).fit(x).raw_support_)
    # two steps from all rows are near the minimum, not at it
    assert len(np.intersect1d(kept, support)) / 252 > 0.9


def test_more_columns_than_rows() -> None:
    x = torch.randn(20, 50, generator=torch.Generator().manual_seed(0))
    assert len(concentrate(x, torch.full((50,), 0.05), 20)) == 20
