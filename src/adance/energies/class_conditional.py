"""Class-conditional energies: of an event given its class."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from adance.configurable import Configurable, remember_chosen
from adance.defaults import Activation
from adance.energies.mlp import MLP, fill_defaults
from adance.errors import InputError


class ClassConditional:
    """Base of class-conditional energies: the number of classes, and a check of labels.

    Attributes:
        classes: Number of classes; labels are 0 to ``classes − 1``.
    """

    classes: int

    def set_classes(self, classes: int) -> None:
        """Set the number of classes.

        Raises:
            InputError: ``classes`` is below 2.
        """
        if classes < 2:
            raise InputError(f"classes must be at least 2, got {classes}")
        self.classes = classes

    def check_labels(self, labels: Tensor, split: str) -> None:
        """Check that ``labels`` ``(N,)``, of the rows of a split, are classes.

        Raises:
            InputError: A label is not below ``classes``.
        """
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= self.classes:
            raise InputError(f"{split} labels are {low} to {high}, but the energy has classes 0 to {self.classes - 1}")


class ClassConditionalMLP(ClassConditional, Configurable, nn.Module):
    """``E(x | y)``: an :class:`MLP` of the flattened event and its one-hot class.

    The trainer passes the labels of each batch, and chains run at these labels. Without a class, the energy of an event
    is the minimum over all classes. ``None`` chooses by the kind of event, as in :class:`MLP`.

    Args:
        event_shape: Shape of one event, ``(D,)`` or ``(C, H, W)``.
        classes: Number of classes; labels are 0 to ``classes − 1``.
        hidden: Widths of the hidden layers.
        activation: ``leaky_relu``, ``relu``, ``silu`` or ``softplus``.
        spectral_norm: Normalize every layer by its largest singular value.
        base: Add a Gaussian base term.

    Raises:
        InputError: ``classes`` is below 2.
    """

    def __init__(
        self,
        event_shape: Sequence[int],
        classes: int = 10,
        hidden: Sequence[int] = (256, 256, 256),
        activation: Activation | None = None,
        spectral_norm: bool | None = None,
        base: bool | None = None,
    ) -> None:
        super().__init__()
        self.set_classes(classes)
        chosen = fill_defaults(event_shape, activation=activation, spectral_norm=spectral_norm, base=base)
        self.energy = MLP((math.prod(event_shape) + classes,), hidden, **chosen)
        remember_chosen(self, **chosen)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)`` given the classes ``condition`` ``(B,)``, whole numbers."""
        if condition is not None:
            return self.energy(self._joined(x, condition))  # type: ignore[no-any-return]
        every = torch.arange(self.classes, device=x.device).repeat(len(x))
        return self(x.repeat_interleave(self.classes, 0), every).view(len(x), -1).amin(1)  # type: ignore[no-any-return]

    def fit_base(self, x: Tensor) -> None:
        """Set the base's center and scale from data ``(B, *event)``; images have no base."""
        self.energy.fit_base(self._joined(x, torch.arange(len(x), device=x.device) % self.classes))

    def _joined(self, x: Tensor, z: Tensor) -> Tensor:
        return torch.cat([x.flatten(1), one_hot(z.long(), self.classes).to(x)], 1)
