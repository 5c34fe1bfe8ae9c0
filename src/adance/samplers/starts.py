"""Where chains start: noise, data, or the ends of earlier chains, as they are, rejuvenated or reweighted."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from adance.configurable import Configurable
from adance.energies.analytic import Density
from adance.errors import InputError
from adance.numbers import is_whole
from adance.samplers.buffer import ReplayBuffer
from adance.samplers.defaults import default_rejuvenation

StartKind = Literal["noise", "data", "persistent", "rejuvenated", "reweighted"]
BUFFERED = ("persistent", "rejuvenated", "reweighted")

USUAL_CAPACITY = 5000
"""Chains that a buffer holds, unless more run at a time."""

OLDER_THAN_MOST = 0.8
"""Beyond the age of this share of its chains, training has hardly seen where chains lead."""


class ChainStarts(Configurable, nn.Module):
    """Chooses the starts of a batch of chains and takes their ends back.

    Args:
        kind: ``noise``: every chain from the noise law. ``data``: from data (contrastive divergence). ``persistent``:
            from the ends of earlier chains. ``rejuvenated``: the same, but each chain on its own coin starts afresh
            (thesis 3.2.1). ``reweighted``: from the ends of earlier chains, resampled whenever the law changes by how
            much likelier the new law makes them. They then follow it, the weights of its modes too, even if no chain
            ever crosses from one mode to another (Jarzynski's equality; Carbone et al. 2023). By default
            ``rejuvenated``, or what :meth:`settle` says.
        rejuvenation: Probability R of a start from noise, for ``rejuvenated``; by default 0.25 for
                images, 0.02 for vectors.
        capacity: Chains that the buffer holds, for the last three kinds; by default 5,000, or as many as run at a time
            where that is more.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self, kind: StartKind | None = None, rejuvenation: float | None = None, capacity: int | None = None
    ) -> None:
        super().__init__()
        if kind not in (None, "noise", "data", *BUFFERED):
            raise InputError(f"unknown chain start {kind!r}; one of noise, data, {', '.join(BUFFERED)}")
        if rejuvenation is not None and not 0 <= rejuvenation <= 1:
            raise InputError(f"rejuvenation is a probability, got {rejuvenation}")
        if capacity is not None and not (is_whole(capacity) and 1 <= capacity < 2**31):
            raise InputError(f"a buffer holds a whole number of chains, 1 or more and below 2**31, got {capacity!r}")
        if kind not in (None, "rejuvenated") and rejuvenation is not None:
            raise InputError(f"rejuvenation is of the start 'rejuvenated', not of {kind!r}; leave it out")
        if kind is None and rejuvenation is not None:
            kind = "rejuvenated"
        self._given_kind, self._given, self._given_capacity = kind, rejuvenation, capacity
        self.capacity = USUAL_CAPACITY if capacity is None else capacity
        self.settle("rejuvenated")
        self.buffer: ReplayBuffer | None = None
        self.noise: Density | None = None
        self._slots: Tensor | None = None

    def settle(self, kind: StartKind) -> None:
        """Be of ``kind`` unless told otherwise at the beginning."""
        self.kind: StartKind = self._given_kind or kind
        self.rejuvenation = (self._given or 0.0) if self.kind == "rejuvenated" else 0.0

    def make_room(self, chains: int) -> None:
        """Have a buffer of at least so many ``chains``, where there is one.

        Raises:
            InputError: A smaller one was asked for.
        """
        if self.kind not in BUFFERED:
            return
        if self._given_capacity is None:
            self.capacity = max(self.capacity, chains)
        if chains > self.capacity:
            raise InputError(
                f"{chains} chains run at a time and the replay buffer keeps {self.capacity}; keep at least {chains}, "
                "or make the batch or the pool smaller"
            )

    @property
    def runs(self) -> float | None:
        """How many runs four of five chains have behind them at most, since they began at noise.

        A chain that starts afresh with probability R before each run has gone through n of them or fewer with
        probability ``1 − (1 − R)ⁿ``. ``None`` where chains do not start afresh.
        """
        if self.kind == "noise" or self.rejuvenation == 1:
            return 1.0
        if self.kind != "rejuvenated" or self.rejuvenation == 0:
            return None
        return max(1.0, math.log1p(-OLDER_THAN_MOST) / math.log1p(-self.rejuvenation))

    def prepare(self, noise: Density, generator: torch.Generator | None = None) -> None:
        """Set the noise law ``noise`` and fill the buffer from it."""
        self.noise = noise
        if self.kind in BUFFERED:
            self.buffer = ReplayBuffer(noise.sample(self.capacity, generator))
            if self._given is None and self.kind == "rejuvenated":
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

        Chains that are not ``finite`` ``(n,)`` are restarted: replaced by draws from the noise law, or, where they are
        reweighted, by their own starts.
        """
        assert self.noise is not None, "prepare() first"
        if self.kind == "reweighted" and self.buffer is not None and self._slots is not None:
            restarts = self.buffer.samples[self._slots]
        else:
            restarts = self.noise.sample(len(x), generator).to(x.dtype)
        x = torch.where(finite.view(-1, *[1] * (x.ndim - 1)), x, restarts)
        if self.buffer is not None and self._slots is not None:
            self.buffer.write(self._slots, x)
        return x
