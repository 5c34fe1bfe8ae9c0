"""Inpainting: the energy of some coordinates of an event, with the others held at given values."""

import torch
from torch import Tensor, nn

from adance.energies.energy import Energy


class InpaintingEnergy(nn.Module):
    """``E`` with some coordinates held at given values, as an energy of the rest.

    Any sampler of this energy samples from the conditional distribution of the rest. What it does to the kept
    coordinates has no effect; :meth:`complete` restores their values at the end.

    Args:
        energy: The energy of whole events.
        given: Values ``(B, *event)`` or ``(*event)``.
        kept: Boolean mask that broadcasts against ``given``: coordinates to hold.
    """

    def __init__(self, energy: Energy, given: Tensor, kept: Tensor) -> None:
        super().__init__()
        self.energy, self.given, self.kept = energy, given, kept

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)``, its kept coordinates replaced."""
        return self.energy(self.complete(x))

    def complete(self, x: Tensor) -> Tensor:
        """``x`` with the kept coordinates set to their given values."""
        return torch.where(self.kept, self.given, x)
