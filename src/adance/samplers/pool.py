"""Chains that are run once and used for many batches."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Taken(NamedTuple):
    """Samples from a pool.

    Attributes:
        x: The samples ``(n, *event)``.
        rows: Where they are in the pool ``(n,)``.
        start: How many samples of this round were taken before them.
        condition: The condition of each sample ``(n, *condition)``, if the model is conditional.
    """

    x: Tensor
    rows: Tensor
    start: int
    condition: Tensor | None = None


class Pool(nn.Module):
    """Samples that are taken without repetition until too few are left; then the pool is shuffled.

    The pool caches the noise's energies of its samples, which do not change until it is filled again. The cache is used
    once it has all samples, so never if a round leaves some samples over.

    Args:
        room: Zeros ``(P, *event)`` for at most P samples, on the device that holds them.
        conditions: Zeros ``(P, *condition)`` for the conditions of samples, if the model is conditional.
    """

    samples: Tensor
    conditions: Tensor | None
    order: Tensor
    energies: Tensor

    def __init__(self, room: Tensor, conditions: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("samples", room)
        self.register_buffer("conditions", conditions)
        self.register_buffer("order", torch.arange(len(room), device=room.device))
        exact = torch.promote_types(room.dtype, torch.float32)
        self.register_buffer("energies", room.new_zeros(len(room), dtype=exact))
        self._size, self._cursor, self._known = len(room), 0, 0

    def __len__(self) -> int:
        return self._size

    def fill(
        self,
        samples: Tensor,
        generator: torch.Generator | None,
        energies: Tensor | None = None,
        conditions: Tensor | None = None,
    ) -> None:
        """Replace the samples by ``samples`` ``(N, *event)``, N ≤ P.

        Args:
            samples: The samples.
            generator: Source of randomness.
            energies: Their energies ``(N,)``, if they are known.
            conditions: Their conditions ``(N, *condition)``, if the model is conditional.
        """
        self._size, self._known = len(samples), 0
        self.samples[: self._size] = samples
        if self.conditions is not None and conditions is not None:
            self.conditions[: self._size] = conditions.detach()
        if energies is not None:
            self.energies[: self._size], self._known = energies, self._size
        self._shuffle(generator)

    def take(self, n: int, generator: torch.Generator | None) -> Taken:
        """The next ``n ≤ N`` samples."""
        if self._cursor + n > self._size:
            self.reshuffle(generator)
        start, self._cursor = self._cursor, self._cursor + n
        rows = self.order[start : self._cursor].clone()
        return Taken(self.samples[rows], rows, start, None if self.conditions is None else self.conditions[rows])

    def reshuffle(self, generator: torch.Generator | None) -> None:
        """Shuffle all samples and start a new pass over them."""
        self._known = self._size if self.energies_known else 0
        self._shuffle(generator)

    @property
    def energies_known(self) -> bool:
        """Whether the energies of all samples are known."""
        return self._known == self._size

    def recall(self, taken: Taken) -> Tensor:
        """Energies ``(n,)`` of samples that were taken, once all are known."""
        return self.energies[taken.rows]

    def remember(self, taken: Taken, energies: Tensor) -> None:
        """Keep the energies ``(n,)`` of samples that were taken."""
        self.energies[taken.rows] = energies.to(self.energies.dtype)
        if self._known == taken.start:
            self._known = taken.start + len(taken.rows)

    def _shuffle(self, generator: torch.Generator | None) -> None:
        device = self.order.device
        self.order[: self._size] = torch.randperm(self._size, generator=generator, device=device)
        self._cursor = 0

    def get_extra_state(self) -> Tensor:
        """How many samples there are, how many of this round were taken, and of how many the energy is known."""
        return torch.tensor([self._size, self._cursor, self._known])

    def set_extra_state(self, state: Tensor) -> None:
        """Continue from :meth:`get_extra_state`."""
        self._size, self._cursor, self._known = state.flatten().tolist()
