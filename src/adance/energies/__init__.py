"""Energies: networks, densities in closed form, the Boltzmann family, and frozen copies."""

from adance.energies.analytic import Density, ExactDensity, Gaussian, GaussianBase, Uniform
from adance.energies.binary import BlockSampled, Conditionals, flip_logits
from adance.energies.blend import Blend
from adance.energies.boltzmann import Boltzmann
from adance.energies.class_conditional import ClassConditional, ClassConditionalMLP
from adance.energies.conditional import ConditionalEnergy, given, needs_condition, takes_condition
from adance.energies.convnet import ConvNet
from adance.energies.energy import Energy, energy_and_gradient, eval_mode, evaluate
from adance.energies.enumeration import Enumerated, enumerate_distribution, log_likelihood
from adance.energies.frozen import freeze, refresh
from adance.energies.hopfield import Hopfield
from adance.energies.inpainting import InpaintingEnergy
from adance.energies.ising import Ising, lattice
from adance.energies.kernel_density import KernelDensity
from adance.energies.mixtures import FullGaussian, GaussianMixture
from adance.energies.mlp import MLP
from adance.energies.pairwise import Pairwise
from adance.energies.plane import Checkerboard, NoisyCurves, Pinwheel
from adance.energies.rbm import RBM, fit_visible_bias
from adance.energies.resnet import ClassConditionalResNet, ResNet
from adance.energies.rings import Rings
from adance.energies.spectral import advance_power_iteration, power_iteration_held
from adance.energies.student import StudentT
from adance.energies.targets import Banana, DoubleWell, Funnel
from adance.energies.tilted import Tilted

__all__ = [
    "MLP",
    "RBM",
    "Banana",
    "Blend",
    "BlockSampled",
    "Boltzmann",
    "Checkerboard",
    "ClassConditional",
    "ClassConditionalMLP",
    "ClassConditionalResNet",
    "ConditionalEnergy",
    "Conditionals",
    "ConvNet",
    "Density",
    "DoubleWell",
    "Energy",
    "Enumerated",
    "ExactDensity",
    "FullGaussian",
    "Funnel",
    "Gaussian",
    "GaussianBase",
    "GaussianMixture",
    "Hopfield",
    "InpaintingEnergy",
    "Ising",
    "KernelDensity",
    "NoisyCurves",
    "Pairwise",
    "Pinwheel",
    "ResNet",
    "Rings",
    "StudentT",
    "Tilted",
    "Uniform",
    "advance_power_iteration",
    "energy_and_gradient",
    "enumerate_distribution",
    "eval_mode",
    "evaluate",
    "fit_visible_bias",
    "flip_logits",
    "freeze",
    "given",
    "lattice",
    "log_likelihood",
    "needs_condition",
    "power_iteration_held",
    "refresh",
    "takes_condition",
]
