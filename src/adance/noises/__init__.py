"""Noises: what a contrastive objective distinguishes data from."""

from adance.noises.adversarial import NeuralNoise, NeuralSampler
from adance.noises.by_name import as_noise
from adance.noises.fixed import DensityNoise, FittedNoise, FixedNoise, FromDistribution
from adance.noises.flow import Flow, FlowDensity, FlowNoise
from adance.noises.noise import Noise, NoiseRecipe, NoiseSample, Separation
from adance.noises.perturbation import Perturbation, PerturbationNoise
from adance.noises.snapshot import Snapshot

__all__ = [
    "DensityNoise",
    "FittedNoise",
    "FixedNoise",
    "Flow",
    "FlowDensity",
    "FlowNoise",
    "FromDistribution",
    "NeuralNoise",
    "NeuralSampler",
    "Noise",
    "NoiseRecipe",
    "NoiseSample",
    "Perturbation",
    "PerturbationNoise",
    "Separation",
    "Snapshot",
    "as_noise",
]
