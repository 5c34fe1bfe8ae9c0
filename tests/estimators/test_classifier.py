"""EnergyClassifier: calibrated probabilities, and densities on the same scale."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from adance.sklearn import EnergyClassifier


def two_normal_laws(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes "a" (a quarter) N(−1, 1) and "b" N(1, 1)."""
    rng = np.random.default_rng(seed)
    is_b = rng.random(n) > 0.25
    return (rng.normal(size=n) + np.where(is_b, 1.0, -1.0))[:, None], np.where(is_b, "b", "a")


@pytest.fixture(scope="module")
def classifier() -> EnergyClassifier:
    return EnergyClassifier(max_steps=300, random_state=0).fit(*two_normal_laws(4000, 0))


def test_probabilities_are_those_of_the_truth(classifier: EnergyClassifier) -> None:
    x = np.linspace(-3, 3, 101)[:, None]
    exact = expit(2 * x[:, 0] + np.log(3))
    assert list(classifier.classes_) == ["a", "b"]
    assert abs(classifier.predict_proba(x)[:, 1] - exact).max() < 0.08


def test_densities_are_those_of_all_classes_together(classifier: EnergyClassifier) -> None:
    x, _ = two_normal_laws(2000, 1)
    exact = np.log(0.25 * norm(-1, 1).pdf(x) + 0.75 * norm(1, 1).pdf(x))[:, 0]
    assert (exact - classifier.score_samples(x)).mean() < 0.05
    assert classifier.score_samples([[30.0]]) < classifier.score_samples(x).min()


def test_rows_far_from_all_training_rows_are_unlikely() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 3))
    fitted = EnergyClassifier(random_state=0).fit(x, x[:, 0] > 0)
    directions = rng.normal(size=(500, 3))
    for distance in (10.0, 1000.0):
        far = distance * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        assert fitted.score_samples(far).max() < fitted.score_samples(x).min()
