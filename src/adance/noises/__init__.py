"""Noises: what a contrastive objective tells data from."""

from adance.noises.around import Around
from adance.noises.distribution import FromDistribution
from adance.noises.fixed import FixedNoise
from adance.noises.flow import Flow
from adance.noises.mixture import SnapshotMixture
from adance.noises.neural import NeuralSampler
from adance.noises.noise import Noise
from adance.noises.snapshot import Snapshot

__all__ = [
    "Around",
    "FixedNoise",
    "Flow",
    "FromDistribution",
    "NeuralSampler",
    "Noise",
    "Snapshot",
    "SnapshotMixture",
]
