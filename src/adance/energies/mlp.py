"""Fully connected energies."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from adance.configurable import Configurable, remember_chosen
from adance.defaults import Activation, defaults_of
from adance.energies.analytic import GaussianBase
from adance.energies.energy import is_vector
from adance.energies.spectral import normalize_layers
from adance.errors import InputError

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "leaky_relu": lambda: nn.LeakyReLU(0.2),
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
}

# 1/√E[f(z)²] for a standard normal z
GAINS = {"leaky_relu": 1.39, "relu": 1.41, "silu": 1.68, "softplus": 1.04}


class MLP(Configurable, nn.Module):
    """A multilayer perceptron ``(B, *event) -> (B,)``, the event flattened.

    ``None`` chooses by the kind of event. Images: leaky ReLU (slope 0.2), spectral normalization, no
    base. Vectors: SiLU, no spectral normalization (a 1-Lipschitz energy cannot represent a sharp density at T = 1) and
    a Gaussian base ``½‖x − μ‖²/s²`` added to the net, which makes ``exp(−E)`` integrable; the trainer fits it to data.
    For vectors the initial weights keep the variance of the signal from layer to layer, and biases are in [−1, 1].
    torch's own initialization shrinks the signal, and a network of smooth activations then takes thousands of steps to
    learn any detail.

    Args:
        event_shape: Shape of one event, ``(D,)`` or ``(C, H, W)``.
        hidden: Widths of the hidden layers.
        activation: ``leaky_relu``, ``relu``, ``silu`` or ``softplus``.
        spectral_norm: Normalize every layer by its largest singular value.
        base: Add a Gaussian base; the network then gets ``(x − μ)/s``.
    """

    def __init__(
        self,
        event_shape: Sequence[int],
        hidden: Sequence[int] = (256, 256, 256),
        activation: Activation | None = None,
        spectral_norm: bool | None = None,
        base: bool | None = None,
    ) -> None:
        super().__init__()
        if not all(width >= 1 for width in hidden):
            raise InputError(f"hidden must be widths, each at least 1, got {list(hidden)}")
        chosen = fill_defaults(event_shape, activation=activation, spectral_norm=spectral_norm, base=base)
        activation = chosen["activation"]
        if activation not in ACTIVATIONS:
            raise InputError(f"unknown activation {activation!r}: use one of {', '.join(ACTIVATIONS)}")
        widths = [math.prod(event_shape), *hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        for narrow, wide in pairwise(widths):
            layers += [nn.Linear(narrow, wide), ACTIVATIONS[activation]()]
        self.net = nn.Sequential(*layers, nn.Linear(widths[-1], 1))
        if is_vector(tuple(event_shape)):
            _keep_variance(self.net, GAINS[activation])
        if chosen["spectral_norm"]:
            normalize_layers(self.net)
        self.base = GaussianBase(event_shape) if chosen["base"] else None
        remember_chosen(self, **chosen)

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)``."""
        if self.base is None:
            return self.net(x).squeeze(1)  # type: ignore[no-any-return]
        return self.net(self.base.standardize(x)).squeeze(1) + self.base(x)  # type: ignore[no-any-return]

    def fit_base(self, x: Tensor) -> None:
        """Set the base's center and scale from data ``(B, *event)``; does nothing without a base."""
        if self.base is not None:
            self.base.fit(x)


def fill_defaults(event_shape: Sequence[int], **settings: Any) -> dict[str, Any]:
    """The ``settings``, of which each that is ``None`` is chosen by the kind of event."""
    default = defaults_of(event_shape)
    return {name: getattr(default, name) if value is None else value for name, value in settings.items()}


def _keep_variance(net: nn.Sequential, gain: float) -> None:
    *hidden, last = (layer for layer in net if isinstance(layer, nn.Linear))
    for layer in hidden:
        nn.init.normal_(layer.weight, std=gain / math.sqrt(layer.in_features))
        nn.init.uniform_(layer.bias, -1, 1)
    nn.init.normal_(last.weight, std=1 / math.sqrt(last.in_features))
    nn.init.zeros_(last.bias)
