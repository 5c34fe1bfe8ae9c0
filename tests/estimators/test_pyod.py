"""PyODEnergy is a detector of PyOD."""

import importlib.util

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from adance.errors import InputError
from adance.sklearn import EnergyOutlierDetector
from adance.sklearn.pyod import PyODEnergy

RNG = np.random.default_rng(0)
ROWS = np.r_[RNG.normal(size=(450, 3)), RNG.normal(size=(50, 3)) + 8]
LABELS = np.repeat([0, 1], [450, 50])

with_pyod = pytest.mark.skipif(importlib.util.find_spec("pyod") is None, reason="needs PyOD")


@with_pyod
def test_it_works_as_a_detector_of_pyod() -> None:
    from pyod.models.base import BaseDetector

    detector = clone(PyODEnergy(contamination=0.1, max_steps=50, random_state=0)).fit(ROWS)
    assert isinstance(detector, BaseDetector)
    assert detector.labels_.sum() == 50
    np.testing.assert_array_equal(detector.labels_, LABELS)
    np.testing.assert_array_equal(detector.predict(ROWS), LABELS)
    np.testing.assert_allclose(detector.decision_function(ROWS), detector.decision_scores_)
    chances = detector.predict_proba(ROWS)
    assert chances.shape == (500, 2)
    assert roc_auc_score(LABELS, chances[:, 1]) == 1
    assert detector.get_params()["dropped"] == 0.5


@with_pyod
def test_its_scores_are_those_of_the_estimator() -> None:
    detector = PyODEnergy(max_steps=50, random_state=0).fit(ROWS)
    plain = EnergyOutlierDetector(contamination=0.5, max_steps=50, random_state=0).fit(ROWS)
    np.testing.assert_array_equal(detector.decision_scores_, -plain.score_samples(ROWS))


@with_pyod
def test_pyod_combines_it_with_its_own_detectors() -> None:
    from pyod.models.knn import KNN
    from pyod.utils.utility import standardizer

    detectors = [PyODEnergy(max_steps=50, random_state=0), KNN()]
    scores = np.stack([detector.fit(ROWS).decision_scores_ for detector in detectors], 1)
    assert roc_auc_score(LABELS, standardizer(scores).mean(1)) > 0.99


@pytest.mark.skipif(importlib.util.find_spec("pyod") is not None, reason="PyOD is installed")
def test_without_pyod_it_says_what_to_install() -> None:
    with pytest.raises(InputError, match=r"pip install 'adance\[pyod\]'"):
        PyODEnergy()
