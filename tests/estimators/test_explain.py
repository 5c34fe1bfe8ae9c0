"""Explanations name the columns that were displaced, and sum to the score."""

import numpy as np
import pytest

from adance.sklearn import EnergyOutlierDetector

COLUMNS = 8
RNG = np.random.default_rng(0)
MIX = RNG.normal(size=(2, COLUMNS, COLUMNS))
CENTERS = 3 * RNG.normal(size=(2, COLUMNS))


def normal_rows(n: int) -> np.ndarray:
    """Two clusters, in each of which all columns are correlated."""
    which = RNG.integers(0, 2, n)
    return CENTERS[which] + np.einsum("nij,nj->ni", MIX[which], RNG.normal(size=(n, COLUMNS)))


TRAIN = normal_rows(2000)


@pytest.fixture(scope="module")
def detector() -> EnergyOutlierDetector:
    return EnergyOutlierDetector(max_steps=300, random_state=0).fit(TRAIN)


@pytest.mark.parametrize("displaced", [1, 2])
def test_the_displaced_columns_come_first(detector: EnergyOutlierDetector, displaced: int) -> None:
    rows, truth = normal_rows(100), []
    for row in rows:
        columns = RNG.permutation(COLUMNS)[:displaced]
        row[columns] += 4 * TRAIN.std(0)[columns] * RNG.choice([-1, 1], displaced)
        truth.append({f"x{i}" for i in columns})
    found = detector.explain(rows, random_state=0).top(displaced)
    right = np.mean([set(top) == columns for top, columns in zip(found, truth, strict=True)])
    assert right >= 0.9


def test_contributions_sum_to_the_score(detector: EnergyOutlierDetector) -> None:
    rows = normal_rows(5)
    explanation = detector.explain(rows, random_state=0)
    total = explanation.contributions.sum(1) + explanation.reference
    np.testing.assert_allclose(total, detector.score_samples(rows), rtol=1e-9)


def test_the_picture_has_the_largest_bars(detector: EnergyOutlierDetector) -> None:
    explanation = detector.explain(normal_rows(1), random_state=0)
    bars = explanation.plot(n=3).patches
    widths = sorted(abs(explanation.contributions[0]))[-3:]
    np.testing.assert_allclose([abs(bar.get_width()) for bar in bars], widths)
