"""Energies: what they are, networks, densities in closed form, and the frozen copy."""

from adance.energies.analytic import Density, Gaussian, GaussianBase, Uniform
from adance.energies.convnet import ConvNet
from adance.energies.energy import Energy, energy_and_gradient, evaluate, reading
from adance.energies.frozen import freeze, refresh
from adance.energies.mlp import MLP
from adance.energies.spectral import advance_power_iteration, power_iteration_held

__all__ = [
    "MLP",
    "ConvNet",
    "Density",
    "Energy",
    "Gaussian",
    "GaussianBase",
    "Uniform",
    "advance_power_iteration",
    "energy_and_gradient",
    "evaluate",
    "freeze",
    "power_iteration_held",
    "reading",
    "refresh",
]
