"""The base of a tilted energy: by default the noise of the objective that trains it."""

import torch
from torch import Tensor, nn

from adance.configurable import describe
from adance.energies.tilted import Tilted
from adance.noises.by_name import as_noise
from adance.noises.fixed import DensityNoise, FittedNoise, FixedNoise
from adance.noises.noise import Noise, NoiseRecipe


def fit_base(
    energy: nn.Module, noise: NoiseRecipe | None, data: Tensor, generator: torch.Generator | None = None
) -> None:
    """Fit the base of a tilted energy to data ``(N, *event)``, unless it has one; other energies stay as they are.

    Args:
        energy: The energy.
        noise: The noise of the objective that trains it, if it has one.
        data: The data.
        generator: Source of randomness.
    """
    if isinstance(energy, Tilted) and energy.base is None:
        base = _base_noise(energy, noise)
        energy.base, energy.fitted_by = base.fit(data, generator), base


def blank_base(energy: nn.Module, noise: NoiseRecipe | None, event_shape: tuple[int, ...]) -> None:
    """Give a tilted energy without a base one whose tensors a checkpoint then fills in."""
    if isinstance(energy, Tilted) and energy.base is None:
        energy.base = _base_noise(energy, noise).blank(event_shape)


def noise_for(energy: nn.Module, noise: NoiseRecipe, data: Tensor, generator: torch.Generator | None = None) -> Noise:
    """The noise of an objective: the base of a tilted energy if it was fitted as that noise, else built for data."""
    fitted_by = energy.fitted_by if isinstance(energy, Tilted) else None
    same = fitted_by is not None and isinstance(noise, DensityNoise) and describe(fitted_by) == describe(noise)
    if same and not noise.trained and isinstance(energy, Tilted):
        return FixedNoise(energy.fitted_base)
    return noise.build(data, generator)


def tilt_of(energy: nn.Module, noise: Noise) -> nn.Module | None:
    """f of a tilted energy whose base is the noise: then the base cancels from the log-ratio, which is −f − log Z."""
    shared = isinstance(energy, Tilted) and isinstance(noise, FixedNoise) and noise.density is energy.base
    return energy.net if shared else None  # type: ignore[return-value]


def _base_noise(energy: Tilted, noise: NoiseRecipe | None) -> DensityNoise:
    """The noise whose density is the base: the named one, else the objective's if it can be one, else a Gaussian."""
    base = noise if energy.base_name is None else as_noise(energy.base_name)
    return base if isinstance(base, DensityNoise) and base.everywhere else FittedNoise("gaussian")
