"""Simulation-based inference: the posterior of a simulator's parameters as one energy."""

from adance.sbi.calibration import Calibration, calibrate
from adance.sbi.noises import PriorPerturbation, ShuffledNoise
from adance.sbi.posterior import PosteriorEnergy
from adance.sbi.prior import Prior
from adance.sbi.sampling import PosteriorChains

__all__ = [
    "Calibration",
    "PosteriorChains",
    "PosteriorEnergy",
    "Prior",
    "PriorPerturbation",
    "ShuffledNoise",
    "calibrate",
]
