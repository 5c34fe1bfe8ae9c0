"""EnergyOutlierDetector finds what is unlikely, also if it was trained on some of it."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from adance.errors import InputError
from adance.sklearn import EnergyOutlierDetector

RNG = np.random.default_rng(0)
CIRCLE = np.linspace(0, 2 * np.pi, 1000)
RING = np.c_[np.cos(CIRCLE), np.sin(CIRCLE)] * 3 + RNG.normal(0, 0.1, (1000, 2))


def test_the_middle_of_a_ring_is_an_outlier() -> None:
    detector = EnergyOutlierDetector(max_steps=500, random_state=0).fit(RING)
    middle = np.random.default_rng(2).normal(0, 0.3, (200, 2))
    scores = detector.score_samples(np.r_[RING, middle])
    assert roc_auc_score(np.repeat([1, 0], [1000, 200]), scores) > 0.99
    assert (detector.predict(middle) == -1).mean() > 0.95
    assert (detector.predict(RING) == -1).mean() == pytest.approx(0.05, abs=0.001)


def test_outliers_among_the_training_rows_are_found() -> None:
    scattered = np.random.default_rng(1).uniform(-8, 8, (100, 2))
    rows = np.r_[RING, scattered]
    detector = EnergyOutlierDetector(contamination=100 / 1100, max_steps=500, random_state=0).fit(rows)
    assert (detector.predict(rows) == -1).sum() == 100
    # 4.4 % of the square is within three standard deviations of the ring; three standard errors of 100 rows are 6 %
    assert (detector.predict(scattered) == -1).mean() > 1 - 0.044 - 0.062


def test_a_cluster_of_outliers_among_the_training_rows_is_found() -> None:
    rng = np.random.default_rng(0)
    rows = np.r_[rng.normal(size=(900, 5)), rng.normal(0, 0.1, (100, 5)) + 3.0]
    labels = np.repeat([0, 1], [900, 100])
    trimmed, plain = (
        EnergyOutlierDetector(contamination=share, max_steps=50, random_state=0) for share in (0.5, "auto")
    )
    areas = [roc_auc_score(labels, -detector.fit(rows).score_samples(rows)) for detector in (trimmed, plain)]
    # the squared distances of the cluster are near 45, of the others χ²(5)
    assert areas[0] > 0.99
    assert areas[1] < 0.5  # many similar rows are likely


@pytest.mark.parametrize("contamination", ["auto", 0.1])
def test_far_rows_are_outliers_in_every_direction(contamination: float | str) -> None:
    """Where a network is linear, it must not outweigh the heavy tails of the base."""
    rng = np.random.default_rng(0)
    x, directions = rng.normal(size=(300, 3)), rng.normal(size=(500, 3))
    detector = EnergyOutlierDetector(contamination=contamination, random_state=0).fit(x)
    for distance in (1e2, 1e4, 1e8):
        assert (detector.predict(distance * directions) == -1).all()


@pytest.mark.parametrize("contamination", [0, 0.6, "some", None])
def test_contamination_is_a_share(contamination: object) -> None:
    with pytest.raises(InputError, match=r"contamination must be 'auto' or a number in \(0, 0.5\]"):
        EnergyOutlierDetector(contamination=contamination).fit(RING)


@pytest.mark.parametrize("contamination", ["auto", 0.5])
def test_three_rows_are_enough_and_two_are_too_few(contamination: float | str) -> None:
    x = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    detector = EnergyOutlierDetector(contamination=contamination, random_state=0)
    assert np.isfinite(detector.fit(x).score_samples(x)).all()
    with pytest.raises(ValueError, match=r"2 sample.* a minimum of 3 is required by EnergyOutlierDetector"):
        detector.fit(x[:2])
