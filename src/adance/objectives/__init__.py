"""Training objectives: what turns an energy, data and randomness into a loss."""

from adance.objectives.adaptive import AdaBRM, AdaNCE
from adance.objectives.adversarial import ACE, FCE
from adance.objectives.contrastive import Contrastive
from adance.objectives.denoising import DenoisingScoreMatching
from adance.objectives.log_ratio import LogRatio
from adance.objectives.maximum_likelihood import ContrastiveDivergence, MaximumLikelihood, PersistentCD
from adance.objectives.nce import BRM, NCE, ConditionalNCE, ContrastiveRecipe, RankingNCE
from adance.objectives.objective import LossOutput, Objective, Recipe, Setting
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
    "ContrastiveRecipe",
    "DenoisingScoreMatching",
    "LogRatio",
    "LossOutput",
    "MaximumLikelihood",
    "Objective",
    "PersistentCD",
    "RankingNCE",
    "Recipe",
    "ScoreMatching",
    "Setting",
]
