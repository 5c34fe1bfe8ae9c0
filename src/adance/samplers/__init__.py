"""Markov chain samplers: kernels, the function that drives them, chain starts and the replay buffer."""

from adance.samplers.buffer import ReplayBuffer
from adance.samplers.defaults import default_sampler
from adance.samplers.kernel import Chains, Kernel, StepInfo, run_chains
from adance.samplers.langevin import Langevin
from adance.samplers.mala import MALA
from adance.samplers.starts import ChainStarts

__all__ = [
    "MALA",
    "ChainStarts",
    "Chains",
    "Kernel",
    "Langevin",
    "ReplayBuffer",
    "StepInfo",
    "default_sampler",
    "run_chains",
]
