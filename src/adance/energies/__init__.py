"""Energies: what they are, networks, densities in closed form, the Boltzmann family, and the frozen copy."""

from adance.energies.analytic import Density, Gaussian, GaussianBase, Uniform
from adance.energies.conditional import Completion, Given
from adance.energies.convnet import ConvNet
from adance.energies.energy import Energy, energy_and_gradient, evaluate, reading
from adance.energies.frozen import freeze, refresh
from adance.energies.mixtures import FullGaussian, GaussianMixture
from adance.energies.mlp import MLP
from adance.energies.rings import Rings
from adance.energies.spectral import advance_power_iteration, power_iteration_held
from adance.energies.targets import Banana, DoubleWell, Funnel

__all__ = [
    "MLP",
    "Banana",
    "Completion",
    "ConvNet",
    "Density",
    "DoubleWell",
    "Energy",
    "FullGaussian",
    "Funnel",
    "Gaussian",
    "GaussianBase",
    "GaussianMixture",
    "Given",
    "Rings",
    "Uniform",
    "advance_power_iteration",
    "energy_and_gradient",
    "evaluate",
    "freeze",
    "power_iteration_held",
    "reading",
    "refresh",
]
