"""The energy that is trained if none is chosen."""

from torch import nn

from adance.energies.energy import is_vector
from adance.energies.mlp import MLP
from adance.energies.tilted import Tilted
from adance.noises.fixed import DensityNoise, FittedNoise
from adance.objectives.adaptive import AdaBRM, AdaNCE
from adance.objectives.objective import Recipe

PLANE = 3
"""The most columns for which ``AdaNCE`` and ``AdaBRM`` get a plain MLP."""

BOUND = 5.0
"""The bound of a tilted energy."""


def default_energy(event_shape: tuple[int, ...], objective: Recipe) -> nn.Module:
    """The energy that is trained with an objective if none is chosen.

    For vectors, if the noise is fitted to the data, not trained, and neither ``gaussian`` nor ``uniform``, it is a
    tilted energy whose base is the noise. With ``AdaNCE`` and ``AdaBRM`` and more than 3 columns, it is a tilted
    mixture of normal distributions. For images, and in all other cases, it is an MLP.

    Args:
        event_shape: Shape of one event.
        objective: The objective.
    """
    if not is_vector(event_shape):
        return MLP(event_shape)
    noise = objective.noise_recipe
    if isinstance(noise, DensityNoise) and not noise.trained and noise.everywhere:
        tilts = not (isinstance(noise, FittedNoise) and noise.kind == "gaussian")
        return Tilted(event_shape, bound=BOUND) if tilts else MLP(event_shape)
    if isinstance(objective, AdaNCE | AdaBRM) and event_shape[0] > PLANE:
        return Tilted(event_shape, base="mixture", bound=BOUND)
    return MLP(event_shape)
