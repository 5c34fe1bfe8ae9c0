"""Evaluation: how good a model is, in numbers that say what they are of."""

from adance.evaluation.ais import anneal_backward, anneal_forward, plan
from adance.evaluation.bracket import Bracket, bracket_log_z
from adance.evaluation.bridge import Bridge
from adance.evaluation.distances import frechet_distance, inception_score, kernel_distance
from adance.evaluation.evaluate import Evaluation, Options, evaluate_run
from adance.evaluation.extractor import Extractor, classify, extract
from adance.evaluation.find_extractor import find_extractor
from adance.evaluation.grid import grid_log_z
from adance.evaluation.measurement import Measurement
from adance.evaluation.outliers import auroc
from adance.evaluation.precision_recall import precision_recall
from adance.evaluation.reference import Reference, load_reference
from adance.evaluation.vectors import mode_coverage, sliced_wasserstein, squared_mmd, stein_discrepancy

__all__ = [
    "Bracket",
    "Bridge",
    "Evaluation",
    "Extractor",
    "Measurement",
    "Options",
    "Reference",
    "anneal_backward",
    "anneal_forward",
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
    "precision_recall",
    "sliced_wasserstein",
    "squared_mmd",
    "stein_discrepancy",
]
