"""Early warnings that a run is not learning: likely causes, and the settings to change."""

from adance.training.doctor.check import Check
from adance.training.doctor.diagnose import CHECKS, diagnose
from adance.training.doctor.finding import Diagnosis, Finding
from adance.training.doctor.history import History
from adance.training.doctor.watch import EARLY, Watch

__all__ = ["CHECKS", "EARLY", "Check", "Diagnosis", "Finding", "History", "Watch", "diagnose"]
