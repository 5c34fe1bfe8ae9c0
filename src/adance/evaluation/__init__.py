"""Evaluation: how good a model is, in numbers that say what they are of."""

from adance.evaluation.ais import Bridge, Schedule, anneal_backward, anneal_forward, plan
from adance.evaluation.distribution import EnergyDistribution, as_distribution
from adance.evaluation.evaluate import Evaluation, evaluate_run
from adance.evaluation.extractor import Extractor, classify, extract
from adance.evaluation.find_extractor import find_extractor
from adance.evaluation.frechet import frechet_distance
from adance.evaluation.inception import inception_score
from adance.evaluation.kid import kernel_distance
from adance.evaluation.log_z import Bracket, bracket_log_z, grid_log_z
from adance.evaluation.measurement import Measurement
from adance.evaluation.metrics import register_metric
from adance.evaluation.mmd import squared_mmd
from adance.evaluation.modes import mode_coverage
from adance.evaluation.options import Options
from adance.evaluation.outliers import auroc
from adance.evaluation.precision_recall import precision_and_recall
from adance.evaluation.reference import Reference, load_reference
from adance.evaluation.sample_distance import SampleDistance
from adance.evaluation.sample_set import SampleSet
from adance.evaluation.stein import stein_discrepancy
from adance.evaluation.wasserstein import sliced_wasserstein

__all__ = [
    "Bracket",
    "Bridge",
    "EnergyDistribution",
    "Evaluation",
    "Extractor",
    "Measurement",
    "Options",
    "Reference",
    "SampleDistance",
    "SampleSet",
    "Schedule",
    "anneal_backward",
    "anneal_forward",
    "as_distribution",
    "auroc",
    "bracket_log_z",
    "classify",
    "evaluate_run",
    "extract",
    "find_extractor",
    "frechet_distance",
    "grid_log_z",
    "inception_score",
    "kernel_distance",
    "load_reference",
    "mode_coverage",
    "plan",
    "precision_and_recall",
    "register_metric",
    "sliced_wasserstein",
    "squared_mmd",
    "stein_discrepancy",
]
