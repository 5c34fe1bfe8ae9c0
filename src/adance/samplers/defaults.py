"""The kernel, starts and rejuvenation rate that are used when none are named; and where a named kernel is unfit."""

import warnings

from torch import Tensor

from adance.energies.analytic import Density, Gaussian, Uniform
from adance.energies.energy import is_vector
from adance.samplers.kernel import Kernel
from adance.samplers.langevin import Langevin
from adance.samplers.mala import MALA


def default_sampler(event_shape: tuple[int, ...]) -> Kernel:
    """Short-run Langevin at the thesis's step and noise for images, adapted MALA at T = 1 for vectors."""
    if is_vector(event_shape):
        return MALA(steps=50)
    return Langevin(steps=30, step_size=1.0, noise_std=0.005)


def warn_of_noise(kernel: Kernel, data: Tensor) -> None:
    """Say where one step of ``kernel`` would drown ``data`` ``(N, *event)`` in noise."""
    deviation = float(data.std())
    if isinstance(kernel, Langevin) and kernel.noise_std > deviation > 0:
        warnings.warn(
            f"every step of Langevin adds noise of {kernel.noise_std:.3g} to data whose deviation is {deviation:.2g}: "
            "its chains hold noise alone; give noise_std, 0.005 for images, or a smaller step_size",
            stacklevel=5,
        )


def default_rejuvenation(event_shape: tuple[int, ...]) -> float:
    """A quarter of the chains for images, where they are short-run; few for vectors, where they ought to converge."""
    return 0.02 if is_vector(event_shape) else 0.25


def default_start_law(data: Tensor) -> Density:
    """Uniform on [−1, 1] for images, the fitted normal law for vectors; ``data`` ``(N, *event)``."""
    if is_vector(data.shape[1:]):
        return Gaussian.fitted(data)
    return Uniform(data.shape[1:]).to(data)
