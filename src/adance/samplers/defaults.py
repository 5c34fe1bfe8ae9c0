"""The distribution that chains start from, and a warning about kernels that do not suit the data."""

import warnings

from torch import Tensor

from adance.energies.analytic import Density, Gaussian, Uniform
from adance.energies.energy import is_vector
from adance.samplers.kernel import Kernel
from adance.samplers.langevin import Langevin


def warn_of_noise(kernel: Kernel, data: Tensor) -> None:
    """Warn if one step of ``kernel`` would drown ``data`` ``(N, *event)`` in noise."""
    deviation = float(data.std())
    if isinstance(kernel, Langevin) and kernel.noise_std > deviation > 0:
        warnings.warn(
            f"every step of Langevin adds noise of {kernel.noise_std:.3g} to data whose standard deviation "
            f"is {deviation:.2g}, so the chains will be pure noise: set noise_std (0.005 for images), or a smaller "
            "step_size",
            stacklevel=5,
        )


def default_start_distribution(data: Tensor) -> Density:
    """Uniform on [−1, 1] for images, the fitted normal distribution for vectors; ``data`` ``(N, *event)``."""
    if is_vector(data.shape[1:]):
        return Gaussian.fitted(data)
    return Uniform(data.shape[1:]).to(data)
