"""The replay buffer, which keeps the ends of chains so that later chains continue from them."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from adance.distributed import gather, rank, world_size
from adance.errors import InputError
from adance.samplers.resampling import resampled_rows


class Resampled(NamedTuple):
    """The chains of a buffer after resampling.

    Attributes:
        rows: For each, its row among the chains of all processes before resampling, ``(capacity,)``.
        copies: For each, whether it duplicates another chain that was kept, ``(capacity,)``.
    """

    rows: Tensor
    copies: Tensor


class ReplayBuffer(nn.Module):
    """The replay buffer (Du and Mordatch 2019): the ends of earlier chains, from which later ones continue.

    A fixed number of chains ``(capacity, *event)``, on the device of the first samples.
    """

    samples: Tensor

    def __init__(self, samples: Tensor) -> None:
        super().__init__()
        self.register_buffer("samples", samples.clone())

    def sample(self, n: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """``n`` distinct random slots ``(n,)`` and the chains in them ``(n, *event)``.

        Raises:
            InputError: ``n`` is more than the buffer holds.
        """
        if n > len(self.samples):
            raise InputError(f"cannot draw {n} chains from a buffer of {len(self.samples)}: make it at least {n}")
        slots = torch.randperm(len(self.samples), generator=generator, device=self.samples.device)[:n]
        return slots, self.samples[slots]

    def write(self, slots: Tensor, x: Tensor) -> None:
        """Write ``x`` ``(n, *event)`` to ``slots``, as returned by :meth:`sample`."""
        self.samples[slots] = x

    def resample(self, log_weights: Tensor, generator: torch.Generator | None = None) -> Resampled:
        """Resample the chains with weights ``exp(log_weights)`` ``(capacity,)`` (systematic resampling).

        The chains of several processes are resampled together and redistributed among them.
        """
        every = gather(self.samples)
        rows = resampled_rows(every, gather(log_weights), generator)
        copies = torch.cat([rows.new_zeros(1, dtype=torch.bool), rows[1:] == rows[:-1]])
        own = slice(rank(), None, world_size())
        self.samples.copy_(every[rows[own]])
        return Resampled(rows[own], copies[own])
