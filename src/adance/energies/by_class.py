"""Class-conditional energies: E(x | y) of an event, given its class."""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from adance.configurable import Configurable
from adance.energies.conditional import Condition, Given
from adance.energies.energy import is_vector
from adance.energies.frozen import freeze
from adance.energies.mlp import MLP
from adance.errors import InputError


class ClassMLP(Configurable, Given):
    """``E(x | y)``: an :class:`MLP` of the flattened event and its class, one column a class.

    The trainer gives it the labels of each batch; chains are then drawn for the very labels they are contrasted with,
    afresh at every step. As long as no class is given, an event has the least of its energies over all classes.
    What is left at ``None`` is chosen by the kind of event, as for :class:`MLP`.

    Args:
        event_shape: Shape of one event, ``(D,)`` or ``(C, H, W)``.
        classes: How many classes there are; labels are 0 to ``classes − 1``.
        hidden: Widths of the hidden layers.
        activation: ``leaky_relu``, ``relu``, ``silu`` or ``softplus``.
        spectral_norm: Normalise every layer by its largest singular value.

    Raises:
        InputError: There are fewer than two classes.
    """

    needs_condition = False

    def __init__(
        self,
        event_shape: Sequence[int],
        classes: int = 10,
        hidden: Sequence[int] = (256, 256, 256),
        activation: Literal["leaky_relu", "relu", "silu", "softplus"] | None = None,
        spectral_norm: bool | None = None,
    ) -> None:
        if classes < 2:
            raise InputError(f"a class-conditional energy needs at least 2 classes, got {classes}")
        vector = is_vector(tuple(event_shape))
        super().__init__(
            MLP(
                (math.prod(event_shape) + classes,),
                hidden,
                activation or ("silu" if vector else "leaky_relu"),
                (not vector) if spectral_norm is None else spectral_norm,
                base=vector,
            )
        )
        self.classes = classes

    def at(self, x: Tensor, z: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)`` of the classes ``z`` ``(B,)``, whole numbers."""
        return self.energy(self._joined(x, z))

    def unconditioned(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)``, the least over all classes."""
        every = torch.arange(self.classes, device=x.device).repeat(len(x))
        return self.at(x.repeat_interleave(self.classes, 0), every).view(len(x), -1).amin(1)

    def of_class(self, label: int) -> "ClassMLP":
        """A frozen copy that is of one class for good.

        Raises:
            InputError: There is no such class.
        """
        if not 0 <= label < self.classes:
            raise InputError(f"there is no class {label}; they are 0 to {self.classes - 1}")
        copy = freeze(self)
        assert isinstance(copy, ClassMLP)
        copy.given = Condition(torch.tensor([label]))
        return copy

    def check_labels(self, labels: Tensor) -> None:
        """Check that ``labels`` ``(N,)`` are classes.

        Raises:
            InputError: One is not.
        """
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= self.classes:
            raise InputError(f"the data's labels are {low} to {high}, the energy's classes 0 to {self.classes - 1}")

    def fit_base(self, x: Tensor) -> None:
        """Set the base's centre and scale from data ``(B, *event)``; images have no base."""
        assert isinstance(self.energy, MLP)
        self.energy.fit_base(self._joined(x, torch.arange(len(x), device=x.device) % self.classes))

    def _joined(self, x: Tensor, z: Tensor) -> Tensor:
        return torch.cat([x.flatten(1), one_hot(z.long(), self.classes).to(x)], 1)
