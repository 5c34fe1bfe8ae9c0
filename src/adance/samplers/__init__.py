"""Markov chain samplers: kernels, the function that drives them, diagnostics, chain starts and the replay buffer."""

from adance.samplers.annealed import Annealed
from adance.samplers.buffer import ReplayBuffer
from adance.samplers.chains import Chains, run_chains
from adance.samplers.diagnostics import effective_sample_size, split_rhat, summary, to_arviz
from adance.samplers.gibbs import BlockGibbs, Gibbs
from adance.samplers.gibbs_with_gradients import GibbsWithGradients
from adance.samplers.hmc import HMC, euler, leapfrog
from adance.samplers.kernel import ChainState, Kernel, SplitKernel, StepInfo
from adance.samplers.langevin import Langevin, MomentumLangevin
from adance.samplers.mala import MALA
from adance.samplers.mass import dense_mass, diagonal_mass
from adance.samplers.metropolis import Flip, Independent, MetropolisHastings, Proposal, RandomWalkMetropolis
from adance.samplers.model_chains import ChainOptions
from adance.samplers.persistent_chains import ChainStarts
from adance.samplers.tempering import Tempering
from adance.samplers.underdamped import UnderdampedLangevin

__all__ = [
    "HMC",
    "MALA",
    "Annealed",
    "BlockGibbs",
    "ChainOptions",
    "ChainStarts",
    "ChainState",
    "Chains",
    "Flip",
    "Gibbs",
    "GibbsWithGradients",
    "Independent",
    "Kernel",
    "Langevin",
    "MetropolisHastings",
    "MomentumLangevin",
    "Proposal",
    "RandomWalkMetropolis",
    "ReplayBuffer",
    "SplitKernel",
    "StepInfo",
    "Tempering",
    "UnderdampedLangevin",
    "dense_mass",
    "diagonal_mass",
    "effective_sample_size",
    "euler",
    "leapfrog",
    "run_chains",
    "split_rhat",
    "summary",
    "to_arviz",
]
