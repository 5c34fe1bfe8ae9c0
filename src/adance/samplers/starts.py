"""Where chains start: noise, data, where earlier chains ended, or the last with rejuvenation (thesis 3.2.1)."""

from typing import Literal

import torch
from torch import Tensor, nn

from adance.configurable import Configurable
from adance.energies.analytic import Density
from adance.errors import InputError
from adance.samplers.buffer import ReplayBuffer
from adance.samplers.defaults import default_rejuvenation

StartKind = Literal["noise", "data", "persistent", "rejuvenated"]


class ChainStarts(Configurable, nn.Module):
    """Chooses the starts of a batch of chains and takes their ends back.

    Args:
        kind: ``noise``: every chain from the noise law. ``data``: from data (contrastive divergence). ``persistent``:
            from the ends of earlier chains. ``rejuvenated``: the same, but each chain on its own coin starts afresh.
        rejuvenation: Probability R of a start from noise, for ``rejuvenated``; by default 0.25 for
                images, 0.02 for vectors.
        capacity: Chains that the buffer holds, for the last two kinds.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self, kind: StartKind = "rejuvenated", rejuvenation: float | None = None, capacity: int = 5000
    ) -> None:
        super().__init__()
        if kind not in ("noise", "data", "persistent", "rejuvenated"):
            raise InputError(f"unknown chain start {kind!r}; one of noise, data, persistent, rejuvenated")
        if rejuvenation is not None and not 0 <= rejuvenation <= 1:
            raise InputError(f"rejuvenation is a probability, got {rejuvenation}")
        if not 1 <= capacity < 2**31:
            raise InputError(f"a buffer holds 1 chain or more, and fewer than 2**31, got {capacity}")
        self.kind, self.capacity = kind, capacity
        self._given = rejuvenation if kind == "rejuvenated" else 0.0
        self.rejuvenation = self._given or 0.0
        self.buffer: ReplayBuffer | None = None
        self.noise: Density | None = None
        self._slots: Tensor | None = None

    def prepare(self, noise: Density, generator: torch.Generator | None = None) -> None:
        """Set the noise law ``noise`` and fill the buffer from it."""
        self.noise = noise
        if self.kind in ("persistent", "rejuvenated"):
            self.buffer = ReplayBuffer(noise.sample(self.capacity, generator))
            if self._given is None:
                self.rejuvenation = default_rejuvenation(self.buffer.samples.shape[1:])

    def draw(self, n: int, data: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        """Starts ``(n, *event)``; ``data`` ``(B, *event)`` is needed for ``data`` alone, repeated when n > B.

        Raises:
            InputError: More chains than the buffer holds, or no data for starts from data.
        """
        assert self.noise is not None, "prepare() first"
        if self.kind == "data":
            if data is None:
                raise InputError("chains that start from data need data")
            rows = torch.arange(n, device=data.device) % len(data)
            return data.detach()[rows]
        if self.buffer is None:
            return self.noise.sample(n, generator)
        self._slots, x = self.buffer.draw(n, generator)
        if self.rejuvenation == 0:
            return x
        fresh = self.noise.sample(n, generator).to(x.dtype)
        coins = torch.rand(n, generator=generator, device=x.device) < self.rejuvenation
        return torch.where(coins.view(-1, *[1] * (x.ndim - 1)), fresh, x)

    def take_back(self, x: Tensor, finite: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Write the ends ``x`` to the slots that were drawn, and return them.

        Chains that are not ``finite`` ``(n,)`` are restarted: replaced by draws from the noise law.
        """
        assert self.noise is not None, "prepare() first"
        restarts = self.noise.sample(len(x), generator).to(x.dtype)
        x = torch.where(finite.view(-1, *[1] * (x.ndim - 1)), x, restarts)
        if self.buffer is not None and self._slots is not None:
            self.buffer.write(self._slots, x)
        return x
