"""The kernel that is used when none is named."""

from adance.energies.energy import is_vector
from adance.samplers.kernel import Kernel
from adance.samplers.langevin import Langevin
from adance.samplers.mala import MALA


def default_sampler(event_shape: tuple[int, ...]) -> Kernel:
    """Short-run Langevin at the thesis's step and noise for images, adapted MALA at T = 1 for vectors."""
    if is_vector(event_shape):
        return MALA(steps=20)
    return Langevin(steps=30, step_size=1.0, noise_std=0.005)
