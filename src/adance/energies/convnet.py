"""The convolutional energies of the thesis (Table 5.1)."""

import math
from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from adance.configurable import Configurable, remember_chosen
from adance.energies.layers import FastConv2d
from adance.energies.spectral import normalize_layers
from adance.errors import InputError

Convolution = tuple[int, int, int, int]
"""Kernel size, stride, padding, output channels."""

ARCHITECTURES: dict[str, tuple[tuple[int, int, int], list[Convolution], list[int]]] = {
    "A": ((1, 28, 28), [(3, 1, 1, 64), (4, 2, 1, 64), (4, 2, 1, 128), (3, 2, 1, 256), (4, 1, 0, 512)], [256]),
    "B": ((3, 32, 32), [(3, 1, 1, 64), (4, 2, 1, 64), (4, 2, 1, 128), (4, 2, 1, 256), (4, 1, 0, 512)], [256]),
    "C": ((3, 32, 32), [(3, 1, 1, 64), (4, 2, 1, 128), (4, 2, 1, 256), (4, 2, 1, 512), (4, 1, 0, 1024)], [512, 256]),
    "small": ((1, 8, 8), [(3, 1, 1, 32), (4, 2, 1, 64), (4, 1, 0, 128)], [128]),
}
"""Event shape, convolutions and hidden linear layers of each architecture."""


class ConvNet(Configurable, nn.Module):
    """A plain convolutional energy ``(B, C, H, W) -> (B,)`` with leaky ReLU after every layer but the last.

    Args:
        event_shape: ``(C, H, W)``.
        architecture: ``A`` (1×28×28), ``B`` or ``C`` (3×32×32) as printed in Table 5.1 of the thesis, or ``small``
            (1×8×8); by default the one for this event shape (``C`` for 3×32×32).
        width: Factor for every number of channels and hidden units.
        slope: Slope of the leaky ReLU below zero.
        spectral_norm: Normalize every layer's weight, flattened to a matrix, by its largest singular value. This does
            not bound the norm of a convolution by one, see :mod:`adance.energies.spectral`.
    """

    def __init__(
        self,
        event_shape: Sequence[int],
        architecture: Literal["A", "B", "C", "small"] | None = None,
        width: float = 1.0,
        slope: float = 0.2,
        spectral_norm: bool = True,
    ) -> None:
        super().__init__()
        found = _find(tuple(event_shape), architecture)
        _, convolutions, hidden = ARCHITECTURES[found]
        channels = event_shape[0]
        layers: list[nn.Module] = []
        for kernel, stride, padding, wide in convolutions:
            wide = max(1, math.ceil(wide * width))
            layers += [FastConv2d(channels, wide, kernel, stride, padding), nn.LeakyReLU(slope)]
            channels = wide
        layers.append(nn.Flatten())
        for wide in hidden:
            wide = max(1, math.ceil(wide * width))
            layers += [nn.Linear(channels, wide), nn.LeakyReLU(slope)]
            channels = wide
        self.net = nn.Sequential(*layers, nn.Linear(channels, 1))
        if spectral_norm:
            normalize_layers(self.net)
        remember_chosen(self, architecture=found)

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of images ``(B, C, H, W)``."""
        return self.net(x).squeeze(1)  # type: ignore[no-any-return]


def _find(event: tuple[int, ...], architecture: str | None) -> str:
    fitting = [name for name, (shape, _, _) in ARCHITECTURES.items() if shape == event]
    if architecture is None and fitting:
        architecture = fitting[-1]
    if architecture not in ARCHITECTURES or architecture not in fitting:
        known = ", ".join(f"{name} for {'×'.join(map(str, shape))}" for name, (shape, _, _) in ARCHITECTURES.items())
        wanted = f"architecture {architecture!r}" if architecture else "any ConvNet architecture"
        raise InputError(f"events of shape {event} do not fit {wanted}. Available: {known}")
    return architecture
