"""Training objectives: what turns an energy, data and randomness into a loss."""

from adance.objectives.contrastive import NCE, AdaNCE, Contrastive
from adance.objectives.denoising import DenoisingScoreMatching
from adance.objectives.likelihood import ContrastiveDivergence, MaximumLikelihood, PersistentCD
from adance.objectives.objective import LossOutput, Objective
from adance.objectives.score_matching import ScoreMatching

__all__ = [
    "NCE",
    "AdaNCE",
    "Contrastive",
    "ContrastiveDivergence",
    "DenoisingScoreMatching",
    "LossOutput",
    "MaximumLikelihood",
    "Objective",
    "PersistentCD",
    "ScoreMatching",
]
