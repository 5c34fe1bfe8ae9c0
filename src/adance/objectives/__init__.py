"""Training objectives: what turns an energy, data and randomness into a loss."""

from adance.objectives.adaptive import AdaBRM, AdaNCE
from adance.objectives.adversarial import ACE, FCE
from adance.objectives.contrastive import Contrastive
from adance.objectives.denoising import DenoisingScoreMatching
from adance.objectives.fixed import BRM, NCE, ConditionalNCE, RankingNCE
from adance.objectives.likelihood import ContrastiveDivergence, MaximumLikelihood, PersistentCD
from adance.objectives.objective import LossOutput, Objective
from adance.objectives.score_matching import ScoreMatching

__all__ = [
    "ACE",
    "BRM",
    "FCE",
    "NCE",
    "AdaBRM",
    "AdaNCE",
    "ConditionalNCE",
    "Contrastive",
    "ContrastiveDivergence",
    "DenoisingScoreMatching",
    "LossOutput",
    "MaximumLikelihood",
    "Objective",
    "PersistentCD",
    "RankingNCE",
    "ScoreMatching",
]
