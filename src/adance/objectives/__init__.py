"""Training objectives: what turns an energy, data and randomness into a loss."""

from adance.objectives.adaptive import AdaBRM, AdaNCE
from adance.objectives.adversarial import ACE, FCE
from adance.objectives.contrastive import Contrastive
from adance.objectives.fixed import BRM, NCE, ConditionalNCE, RankingNCE
from adance.objectives.objective import LossOutput, Objective

__all__ = [
    "ACE",
    "BRM",
    "FCE",
    "NCE",
    "AdaBRM",
    "AdaNCE",
    "ConditionalNCE",
    "Contrastive",
    "LossOutput",
    "Objective",
    "RankingNCE",
]
