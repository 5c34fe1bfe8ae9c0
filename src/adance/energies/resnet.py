"""Residual convolutional energies of images of any size."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from adance.configurable import Configurable
from adance.defaults import Activation
from adance.energies.class_conditional import ClassConditional
from adance.energies.layers import FastConv2d
from adance.energies.mlp import ACTIVATIONS
from adance.energies.spectral import normalize_layers
from adance.errors import InputError

CHANNELS, MAX_CHANNELS, HIDDEN = 48, 192, 192
"""At width 1: channels of the first block, the maximum number of channels, and units of the hidden layer."""

SMALLEST, LARGEST, LAST_SIDE = 8, 128, 4
"""Smallest and largest side of images in pixels, and the largest side that reaches the fully connected layers."""


class ResidualBlock(nn.Module):
    """``(B, n_in, H, W) -> (B, n_out, H, W)``: two 3×3 convolutions, added to the input.

    Args:
        n_in: Channels of the input.
        n_out: Channels of the output.
        activation: A name of ``ACTIVATIONS``, applied before each convolution.
    """

    def __init__(self, n_in: int, n_out: int, activation: Activation) -> None:
        super().__init__()
        make = ACTIVATIONS[activation]
        first, second = FastConv2d(n_in, n_out, 3, padding=1), FastConv2d(n_out, n_out, 3, padding=1)
        self.residual = nn.Sequential(make(), first, make(), second)
        self.shortcut = nn.Identity() if n_in == n_out else FastConv2d(n_in, n_out, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The features of ``x``."""
        return self.shortcut(x) + self.residual(x)  # type: ignore[no-any-return]


class ResNet(Configurable, nn.Module):
    """A residual convolutional energy ``(B, C, H, W) -> (B,)`` of images with sides of 8 to 128 pixels.

    A 4×4 convolution with stride 2 (3×3 with stride 1 below 16 pixels) and a residual block (He et al. 2016, with
    activations first); then average pooling and another block for each halving of the side down to 4 pixels; then two
    linear layers. Channels double from block to block, from 48 to at most 192. At 32×32 it has 1.3 million weights, and
    a gradient takes 113 million operations: a quarter of :class:`ConvNet`'s architecture C.

    Args:
        event_shape: ``(C, H, W)``.
        width: Factor for every number of channels and hidden units.
        activation: ``leaky_relu``, ``relu``, ``silu`` or ``softplus``.
        spectral_norm: Normalize every layer's weight, flattened to a matrix, by its largest singular value.

    Raises:
        InputError: Events are not images with sides of 8 to 128 pixels, ``width`` is not positive, or ``activation`` is
            unknown.
    """

    def __init__(
        self,
        event_shape: Sequence[int],
        width: float = 1.0,
        activation: Activation = "leaky_relu",
        spectral_norm: bool = False,
    ) -> None:
        super().__init__()
        self.net = make_layers(event_shape, 1, width, activation, spectral_norm)

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of images ``(B, C, H, W)``."""
        return self.net(x).squeeze(1)  # type: ignore[no-any-return]


class ClassConditionalResNet(ClassConditional, Configurable, nn.Module):
    """``E(x | y)``: a :class:`ResNet` with one output for each class.

    It is trained like :class:`ClassConditionalMLP`. Without a class, the energy is the minimum over all classes.

    Args:
        event_shape: ``(C, H, W)``.
        classes: Number of classes; labels are 0 to ``classes − 1``.
        width: Factor for every number of channels and hidden units.
        activation: ``leaky_relu``, ``relu``, ``silu`` or ``softplus``.
        spectral_norm: Normalize every layer's weight, flattened to a matrix, by its largest singular value.

    Raises:
        InputError: ``classes`` is below 2, or as for :class:`ResNet`.
    """

    def __init__(
        self,
        event_shape: Sequence[int],
        classes: int = 10,
        width: float = 1.0,
        activation: Activation = "leaky_relu",
        spectral_norm: bool = False,
    ) -> None:
        super().__init__()
        self.set_classes(classes)
        self.net = make_layers(event_shape, classes, width, activation, spectral_norm)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, C, H, W)`` given the classes ``condition`` ``(B,)``, whole numbers."""
        energies: Tensor = self.net(x)
        if condition is None:
            return energies.amin(1)
        return torch.gather(energies, 1, condition.long()[:, None]).squeeze(1)


def make_layers(
    event_shape: Sequence[int], outputs: int, width: float, activation: Activation, spectral_norm: bool
) -> nn.Sequential:
    """The layers of a residual network ``(B, C, H, W) -> (B, outputs)``.

    Raises:
        InputError: As for :class:`ResNet`.
    """
    _check(event_shape, width, activation)
    channels, *sides = event_shape
    wide, widest, hidden = (max(1, round(number * width)) for number in (CHANNELS, MAX_CHANNELS, HIDDEN))
    make = ACTIVATIONS[activation]
    if min(sides) >= 2 * SMALLEST:
        layers: list[nn.Module] = [FastConv2d(channels, wide, 4, stride=2, padding=1)]
        sides = [side // 2 for side in sides]
    else:
        layers = [FastConv2d(channels, wide, 3, padding=1)]
    layers.append(ResidualBlock(wide, wide, activation))
    while max(sides) > LAST_SIDE:
        n_in, wide = wide, min(2 * wide, widest)
        layers += [nn.AvgPool2d(2, ceil_mode=True), ResidualBlock(n_in, wide, activation)]
        sides = [-(-side // 2) for side in sides]
    layers += [make(), nn.Flatten(), nn.Linear(wide * math.prod(sides), hidden), make(), nn.Linear(hidden, outputs)]
    net = nn.Sequential(*layers)
    if spectral_norm:
        normalize_layers(net)
    return net


def _check(event_shape: Sequence[int], width: float, activation: str) -> None:
    sides = event_shape[1:]
    if len(event_shape) != 3 or not all(SMALLEST <= side <= LARGEST for side in sides):
        raise InputError(
            f"ResNet needs images (C, H, W) with sides of {SMALLEST} to {LARGEST} pixels, got events of shape "
            f"{tuple(event_shape)}"
        )
    if not width > 0:
        raise InputError(f"width must be more than 0, got {width}")
    if activation not in ACTIVATIONS:
        raise InputError(f"unknown activation {activation!r}: use one of {', '.join(ACTIVATIONS)}")
