"""Simulation-based inference: the posterior of a simulator's parameters as one energy."""

from adance.sbi.calibration import Calibration, calibrate
from adance.sbi.noises import PosteriorSnapshot, PriorPerturbation, ShuffledNoise
from adance.sbi.package import to_sbi
from adance.sbi.posterior import PosteriorEnergy
from adance.sbi.prior import Prior
from adance.sbi.sampling import PosteriorChains

__all__ = [
    "Calibration",
    "PosteriorChains",
    "PosteriorEnergy",
    "PosteriorSnapshot",
    "Prior",
    "PriorPerturbation",
    "ShuffledNoise",
    "calibrate",
    "to_sbi",
]
