"""Training objectives: what turns an energy, data and randomness into a loss."""

from adance.objectives.contrastive import NCE, AdaNCE, Contrastive
from adance.objectives.objective import LossOutput, Objective

__all__ = ["NCE", "AdaNCE", "Contrastive", "LossOutput", "Objective"]
