"""Training: the loop, checkpoints and the run folder."""

from adance.training.doctor import Diagnosis, Finding
from adance.training.loading import load
from adance.training.pretrained import load_pretrained
from adance.training.run import Run
from adance.training.settings import Settings
from adance.training.trainer import Trainer

__all__ = ["Diagnosis", "Finding", "Run", "Settings", "Trainer", "load", "load_pretrained"]
