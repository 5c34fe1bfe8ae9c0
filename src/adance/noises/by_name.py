"""Noises by name."""

from typing import Literal

from torch.distributions import Distribution

from adance.energies.analytic import Density
from adance.noises.fixed import FittedNoise, FixedNoise
from adance.noises.flow import Flow
from adance.noises.noise import NoiseRecipe

NoiseName = Literal["gaussian", "uniform", "mixture", "student", "kde", "cover", "flow"]
NoiseLike = NoiseName | NoiseRecipe | Density | Distribution


def as_noise(noise: NoiseLike) -> NoiseRecipe:
    """Turn a name, a noise or a density into a noise recipe.

    Raises:
        InputError: The name is unknown.
    """
    if isinstance(noise, NoiseRecipe):
        return noise
    if isinstance(noise, str):
        return Flow() if noise == "flow" else FittedNoise(noise)
    return FixedNoise(noise)
