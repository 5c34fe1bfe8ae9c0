"""The kernel, starts and rejuvenation rate that are used when none are named; and where a named kernel is unfit."""

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from adance.energies.analytic import Density, Gaussian, Uniform
from adance.energies.energy import is_vector
from adance.errors import InputError
from adance.samplers.kernel import Kernel
from adance.samplers.langevin import Langevin
from adance.samplers.mala import MALA

Changes = Mapping[str, Any]
"""Arguments of the default kernel, by name, that take the place of its own."""


def default_sampler(event_shape: tuple[int, ...]) -> Kernel:
    """Short-run Langevin at the thesis's step and noise for images, adapted MALA at T = 1 for vectors."""
    if is_vector(event_shape):
        return MALA(steps=50)
    return Langevin(steps=30, step_size=1.0, noise_std=0.005)


def with_changes(default_kernel: Kernel, changes: Changes) -> Kernel:
    """The default kernel, made again with these arguments instead of its own.

    Raises:
        InputError: It has no such argument, or refuses a value.
    """
    made_from = type(default_kernel)
    try:
        return made_from(**{**default_kernel.init_args, **changes})
    except (InputError, TypeError) as error:
        takes = ", ".join(inspect.signature(made_from.__init__).parameters).removeprefix("self, ")
        raise InputError(f"sampler: {error}; the default is {made_from.__name__}, which takes {takes}") from None


def chosen_sampler(given: Kernel | Changes | None, event_shape: tuple[int, ...]) -> Kernel:
    """The kernel that was given, or the default one for these events, with its changes if there are any."""
    if isinstance(given, Kernel):
        return given
    default_kernel = default_sampler(event_shape)
    return with_changes(default_kernel, given) if given else default_kernel


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
