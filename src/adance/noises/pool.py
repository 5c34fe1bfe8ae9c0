"""Chains drawn once for a snapshot and taken from many times."""

import torch
from torch import Tensor, nn


class Pool(nn.Module):
    """Samples that are taken without repeats until too few are left, and then anew in another order.

    What is known of their energies is kept: until the next snapshot they do not change. Energies are of use once they
    are known for all samples, so never where a round leaves some over.

    Args:
        room: For at most that many samples, zeros ``(P, *event)`` on the device where they are to lie.
    """

    samples: Tensor
    order: Tensor
    energies: Tensor

    def __init__(self, room: Tensor) -> None:
        super().__init__()
        self.register_buffer("samples", room)
        self.register_buffer("order", torch.arange(len(room), device=room.device))
        exact = torch.promote_types(room.dtype, torch.float32)
        self.register_buffer("energies", room.new_zeros(len(room), dtype=exact))
        self._size, self._cursor, self._taken, self._known = len(room), 0, 0, 0

    def __len__(self) -> int:
        return self._size

    def fill(self, samples: Tensor, generator: torch.Generator | None) -> None:
        """Hold these samples ``(N, *event)``, N ≤ P, and no others; nothing is known of their energies."""
        self._size, self._known = len(samples), 0
        self.samples[: self._size] = samples
        self._shuffle(generator)

    def take(self, n: int, generator: torch.Generator | None) -> Tensor:
        """The next ``n ≤ N`` samples ``(n, *event)``."""
        if self._cursor + n > self._size:
            self._known = self._size if self.energies_known else 0
            self._shuffle(generator)
        self._cursor, self._taken = self._cursor + n, n
        return self.samples[self._last_taken]

    @property
    def energies_known(self) -> bool:
        """Whether the energies of all samples are."""
        return self._known == self._size

    def recall(self) -> Tensor:
        """Energies ``(n,)`` of the samples taken last, where they are known."""
        return self.energies[self._last_taken]

    def remember(self, energies: Tensor) -> None:
        """Keep these energies ``(n,)`` of the samples taken last."""
        self.energies[self._last_taken] = energies.to(self.energies.dtype)
        if self._known == self._cursor - self._taken:
            self._known = self._cursor

    @property
    def _last_taken(self) -> Tensor:
        return self.order[self._cursor - self._taken : self._cursor]

    def _shuffle(self, generator: torch.Generator | None) -> None:
        device = self.order.device
        self.order[: self._size] = torch.randperm(self._size, generator=generator, device=device)
        self._cursor = self._taken = 0

    def get_extra_state(self) -> Tensor:
        """What is no tensor: how many there are, the place in the order, how many were taken last and are known."""
        return torch.tensor([self._size, self._cursor, self._taken, self._known])

    def set_extra_state(self, state: Tensor) -> None:
        """Go on from :meth:`get_extra_state`."""
        self._size, self._cursor, self._taken, self._known = state.tolist()
