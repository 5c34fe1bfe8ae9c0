"""The estimators follow scikit-learn's conventions."""

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from adance.sklearn import DensityRatio, EnergyClassifier, EnergyDensity, EnergyOutlierDetector

ESTIMATORS = [EnergyDensity(), EnergyOutlierDetector(), DensityRatio(), EnergyClassifier()]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)
