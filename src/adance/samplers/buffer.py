"""The replay buffer (Du and Mordatch 2019): the ends of earlier chains, from which later ones go on."""

import torch
from torch import Tensor, nn

from adance.errors import InputError


class ReplayBuffer(nn.Module):
    """A fixed number of chains ``(capacity, *event)``, on the device of what it is made from.

    Attributes:
        log_weights: What each chain counts for ``(capacity,)``, up to a constant.
    """

    samples: Tensor
    log_weights: Tensor

    def __init__(self, samples: Tensor) -> None:
        super().__init__()
        self.register_buffer("samples", samples.clone())
        self.register_buffer("log_weights", samples.new_zeros(len(samples)))

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

    def resample(self, generator: torch.Generator | None = None) -> Tensor:
        """Keep each chain as often as its weight says, and make all weights equal; return the effective share before.

        Systematic: a chain with the share w of all weight is kept ``w·capacity`` times, rounded up or down. Weights
        that are not numbers count as none; without any finite weight nothing moves.
        """
        # on the CPU, since not every device has the float64 that keeps equal weights equal
        weights = self.log_weights.cpu().double().nan_to_num(-torch.inf, posinf=-torch.inf).softmax(0)
        weights = torch.where(weights.isfinite().all(), weights, 1 / len(weights))
        offset = torch.rand((), generator=generator, device=self.samples.device).cpu()
        places = (torch.arange(len(weights)) + offset.double()) / len(weights)
        rows = torch.searchsorted(weights.cumsum(0), places).clamp(max=len(weights) - 1)
        self.samples.copy_(self.samples[rows.to(self.samples.device)])
        self.log_weights.zero_()
        return (1 / (len(weights) * weights.square().sum())).to(self.samples)
