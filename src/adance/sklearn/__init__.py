"""Estimators for tables with scikit-learn's interface: densities, outliers, density ratios and classes."""

from adance.sklearn.classifier import EnergyClassifier
from adance.sklearn.density import EnergyDensity
from adance.sklearn.outliers import EnergyOutlierDetector
from adance.sklearn.ratio import DensityRatio

__all__ = ["DensityRatio", "EnergyClassifier", "EnergyDensity", "EnergyOutlierDetector"]
