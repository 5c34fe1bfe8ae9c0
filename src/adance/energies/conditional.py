"""An energy of some coordinates, the others given."""

import torch
from torch import Tensor, nn

from adance.energies.energy import Energy


class Completion(nn.Module):
    """``E`` as a function of the coordinates that are not kept: kept ones are set to given values.

    Any sampler of this energy draws from the conditional law of the rest, since nothing that it does to the kept
    coordinates has an effect; :meth:`complete` puts the given values back at the end.

    Args:
        energy: The energy of whole events.
        given: Values ``(B, *event)`` or ``(*event)``.
        kept: Boolean, broadcasting against ``given``: where the given values hold.
    """

    def __init__(self, energy: Energy, given: Tensor, kept: Tensor) -> None:
        super().__init__()
        self.energy, self.given, self.kept = energy, given, kept

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)``, its kept coordinates replaced."""
        return self.energy(self.complete(x))

    def complete(self, x: Tensor) -> Tensor:
        """``x`` with the given values where they are kept."""
        return torch.where(self.kept, self.given, x)
