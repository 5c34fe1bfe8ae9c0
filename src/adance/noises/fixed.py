"""Noise from a fixed, normalized density."""

import contextlib
import copy
from abc import abstractmethod
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.distributions import Distribution

from adance.energies.analytic import Density, Gaussian, Uniform
from adance.energies.blend import Blend
from adance.energies.energy import is_vector
from adance.energies.kernel_density import KernelDensity
from adance.energies.mixtures import FittedMixture
from adance.energies.student import StudentT
from adance.errors import InputError
from adance.noises.noise import Noise, NoiseRecipe, NoiseSample
from adance.numbers import check_count
from adance.randomness import drawing_from

FittedKind = Literal["gaussian", "uniform", "mixture", "student", "kde", "cover"]
VECTORS_ONLY = ("student", "kde", "cover")

BLANK_ROWS = 200
"""Rows that a blank density is fitted to."""

IMAGE_RANGE = 1.2
"""Half-width of the uniform noise on images; dequantized or noisy images exceed [−1, 1] a little."""


class FromDistribution:
    """A ``torch.distributions.Distribution`` as a noise; its batch axes are part of the event.

    Samples come from the given generator. Values outside the support have the log-density −∞. Arguments are not checked
    at every call, since that would wait for the device.

    Args:
        distribution: The distribution, with its tensors on the device of training.
    """

    def __init__(self, distribution: Distribution) -> None:
        self.distribution = _unchecked(distribution)
        self.event_shape = distribution.batch_shape + distribution.event_shape

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, *event)``."""
        with drawing_from(generator):
            return self.distribution.sample((n,))

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
        values: Tensor = self.distribution.log_prob(x)
        support = None
        with contextlib.suppress(NotImplementedError):
            support = self.distribution.support
        if support is not None:
            values = torch.where(support.check(x), values, -torch.inf)  # type: ignore[no-untyped-call]
        return values.flatten(1).sum(1) if values.ndim > 1 else values


class FixedNoise(Noise):
    """Noise from a fixed density that is sampled exactly.

    Args:
        density: A ``torch.distributions.Distribution`` on the device of training, or any object with
            ``sample(n, generator)`` and ``log_prob(x)``.
    """

    def __init__(self, density: Density | Distribution) -> None:
        super().__init__()
        self.density: Density = FromDistribution(density) if isinstance(density, Distribution) else density

    def build(self, data: Tensor, generator: torch.Generator | None = None) -> "FixedNoise":
        """The noise itself.

        Raises:
            InputError: Samples of the distribution have another shape than ``data``, or are on another device.
        """
        if isinstance(self.density, FromDistribution):
            _check(self.density, data)
        return self

    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> NoiseSample:
        """``n`` independent samples ``(n, *event)``."""
        return NoiseSample(self.density.sample(n, generator).to(data.dtype))

    def energy(self, x: Tensor, sample: NoiseSample | None = None, condition: Tensor | None = None) -> Tensor:
        """``−log p_n(x)`` ``(M,)``."""
        return -self.density.log_prob(x).to(x.dtype)


class DensityNoise(NoiseRecipe):
    """The recipe of a fixed noise whose density is fitted to data, so that it can also be the base of an energy."""

    @property
    def everywhere(self) -> bool:
        """Whether the density is positive everywhere."""
        return True

    @abstractmethod
    def fit(self, data: Tensor, generator: torch.Generator | None = None) -> Density:
        """The density, fitted to data ``(N, *event)``."""

    def blank(self, event_shape: tuple[int, ...]) -> Density:
        """A density whose tensors can be replaced by those of a fitted one, on the CPU."""
        generator = torch.Generator().manual_seed(0)
        return self.fit(torch.randn(BLANK_ROWS, *event_shape, generator=generator), generator)

    def build(self, data: Tensor, generator: torch.Generator | None = None) -> Noise:
        """The noise fitted to data ``(N, *event)``."""
        return FixedNoise(self.fit(data, generator))


class FittedNoise(DensityNoise):
    """A fixed noise that is fitted to the data.

    Args:
        kind: ``gaussian``: the normal distribution with the data's mean and standard deviation in each axis.
            ``uniform``: the uniform distribution on [−1.2, 1.2] for images, and on the data's range plus a tenth on
            either side for vectors. ``mixture``: a mixture of normal distributions. For vectors only: ``student``:
            Student's t with the data's mean and covariance and 4 degrees of freedom, which has heavier tails;
            ``kde``: a kernel density estimate with several bandwidths; ``cover``: these three in equal shares, which
            covers modes and tails.
        components: Number of normal distributions in a ``mixture``, at least 1.

    Raises:
        InputError: ``kind`` is unknown, or ``components`` below 1.
    """

    def __init__(self, kind: FittedKind = "gaussian", components: int = 10) -> None:
        if kind not in get_args(FittedKind):
            raise InputError(f"unknown noise {kind!r}: use one of {', '.join(get_args(FittedKind))}")
        check_count("components", components)
        self.kind, self.components = kind, components

    @property
    def everywhere(self) -> bool:
        """Whether the density is positive everywhere."""
        return self.kind != "uniform"

    def fit(self, data: Tensor, generator: torch.Generator | None = None) -> Density:
        """The density, fitted to data ``(N, *event)``.

        Raises:
            InputError: The kind is for vectors only, and the data are not vectors.
        """
        if self.kind in VECTORS_ONLY and not is_vector(data.shape[1:]):
            raise InputError(f"noise {self.kind!r} is for vectors: use gaussian, uniform, mixture or flow for images")
        if self.kind == "gaussian":
            return Gaussian.fitted(data)
        if self.kind == "mixture":
            return FittedMixture.to_data(data, self.components)
        if self.kind == "student":
            return StudentT.fitted(data)
        if self.kind == "kde":
            return KernelDensity.fitted(data, generator)
        if self.kind == "cover":
            mixture = FittedMixture.to_data(data, self.components)
            return Blend([mixture, StudentT.fitted(data), KernelDensity.fitted(data, generator)])
        low, high = _widened(data) if data.ndim == 2 else (-IMAGE_RANGE, IMAGE_RANGE)
        return Uniform(data.shape[1:], low, high).to(data)


def _unchecked(distribution: Distribution) -> Distribution:
    distribution = copy.copy(distribution)
    distribution._validate_args = False
    for name, value in vars(distribution).items():
        if isinstance(value, Distribution):
            setattr(distribution, name, _unchecked(value))
    return distribution


def _check(density: FromDistribution, data: Tensor) -> None:
    if density.event_shape != data.shape[1:]:
        raise InputError(
            f"the noise has events of shape {tuple(density.event_shape)}, but the data {tuple(data.shape[1:])}"
        )
    device = density.sample(1, torch.Generator().manual_seed(0)).device
    if device != data.device:
        raise InputError(f"the noise's distribution is on {device}: move its tensors to {data.device}")


def _widened(data: Tensor) -> tuple[float, float]:
    low, high = float(data.min()), float(data.max())
    room = 0.1 * (high - low) or 1.0
    return low - room, high + room
