"""Noises: what a contrastive objective tells data from."""

from adance.noises.fixed import FixedNoise
from adance.noises.noise import Noise
from adance.noises.snapshot import Snapshot

__all__ = ["FixedNoise", "Noise", "Snapshot"]
