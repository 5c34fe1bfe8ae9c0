"""The replay buffer (Du and Mordatch 2019): the ends of earlier chains, from which later ones go on."""

import torch
from torch import Tensor, nn

from adance.errors import InputError


class ReplayBuffer(nn.Module):
    """A fixed number of chains ``(capacity, *event)``, on the device of what it is made from."""

    samples: Tensor

    def __init__(self, samples: Tensor) -> None:
        super().__init__()
        self.register_buffer("samples", samples.clone())

    def draw(self, n: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """``n`` distinct slots ``(n,)``, all equally likely, and what is in them ``(n, *event)``.

        Raises:
            InputError: ``n`` is more than the buffer holds.
        """
        if n > len(self.samples):
            raise InputError(f"{n} chains cannot be drawn from a buffer of {len(self.samples)}; make the buffer larger")
        slots = torch.randperm(len(self.samples), generator=generator, device=self.samples.device)[:n]
        return slots, self.samples[slots]

    def write(self, slots: Tensor, x: Tensor) -> None:
        """Put ``x`` ``(n, *event)`` into the very slots that were drawn."""
        self.samples[slots] = x

    def resample(self, log_weights: Tensor, generator: torch.Generator | None = None) -> None:
        """Keep each chain as often as its weight ``exp(log_weights)`` ``(capacity,)`` says.

        Systematic: a chain with the share w of all weight is kept ``w·capacity`` times, rounded up or down, and so is
        each set of chains that lie together in a random direction, such as a mode. Weights that are not finite count as
        none; without any finite weight nothing moves.
        """
        # on the CPU, since not every device has the float64 that keeps equal weights equal
        weights = torch.where(log_weights.isfinite(), log_weights, -torch.inf).cpu().double().softmax(0)
        weights = torch.where(weights.isfinite().all(), weights, 1 / len(weights))
        x = self.samples.flatten(1)
        direction = torch.randn(x.shape[1], generator=generator, device=x.device, dtype=x.dtype)
        order = torch.argsort(x @ direction).cpu()
        offset = torch.rand((), generator=generator, device=x.device).cpu()
        places = (torch.arange(len(weights)) + offset.double()) / len(weights)
        kept = torch.searchsorted(weights[order].cumsum(0), places).clamp(max=len(weights) - 1)
        self.samples.copy_(self.samples[order[kept].to(x.device)])
