"""Where chains start: noise, data, or the ends of earlier chains, as they are, rejuvenated or reweighted."""

import math
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from adance.energies.analytic import Density
from adance.errors import InputError
from adance.numbers import check_count, check_real
from adance.samplers.buffer import ReplayBuffer

StartKind = Literal["noise", "data", "persistent", "rejuvenated", "reweighted"]
BUFFERED = ("persistent", "rejuvenated", "reweighted")

OLDER_THAN_MOST = 0.8
"""Beyond the age of this share of its chains, training has hardly seen where chains lead."""


class Starts(NamedTuple):
    """Starts of chains.

    Attributes:
        x: Positions ``(n, *event)``.
        slots: Where in the buffer they came from ``(n,)``; ``None`` without a buffer.
    """

    x: Tensor
    slots: Tensor | None


def check_starts(kind: str, rejuvenation: float, capacity: int) -> None:
    """Check the settings of :class:`ChainStarts`.

    Raises:
        InputError: One is not in its range.
    """
    if kind not in get_args(StartKind):
        raise InputError(f"start must be one of {', '.join(get_args(StartKind))}, got {kind!r}")
    check_real("rejuvenation", rejuvenation, 0)
    if rejuvenation > 1:
        raise InputError(f"rejuvenation is a probability, at most 1, got {rejuvenation}")
    if kind != "rejuvenated" and rejuvenation > 0:
        raise InputError(f"rejuvenation={rejuvenation} needs start='rejuvenated', got start={kind!r}")
    check_count("buffer", capacity)


def runs_since_noise(kind: StartKind, rejuvenation: float) -> float | None:
    """How many runs four of five chains have behind them at most, since they began at noise.

    A chain that starts afresh with probability R before each run has gone through n of them or fewer with probability
    ``1 − (1 − R)ⁿ``. ``None`` if chains do not start afresh.
    """
    if kind == "noise" or rejuvenation == 1:
        return 1.0
    if rejuvenation == 0:
        return None
    return max(1.0, math.log1p(-OLDER_THAN_MOST) / math.log1p(-rejuvenation))


class ChainStarts(nn.Module):
    """Chooses the starts of a batch of chains and stores their ends.

    Args:
        noise: The law of fresh starts; the buffer is filled from it.
        kind: ``noise``: every chain starts from the noise law. ``data``: from data (contrastive divergence).
            ``persistent``: from the ends of earlier chains. ``rejuvenated``: the same, but each chain starts afresh
            with probability R (thesis 3.2.1). ``reweighted``: from the ends of earlier chains, resampled at each change
            of the law by how much likelier the new law makes them (Jarzynski's equality; Carbone et al. 2023).
        rejuvenation: R, for ``rejuvenated``.
        capacity: Chains that the buffer holds, for the last three kinds.
        generator: Source of randomness.

    Raises:
        InputError: The kind is unknown, R is not in [0, 1] or given for another kind, or the capacity is below 1.
    """

    def __init__(
        self,
        noise: Density,
        kind: StartKind = "rejuvenated",
        rejuvenation: float = 0.0,
        capacity: int = 5000,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_starts(kind, rejuvenation, capacity)
        self.noise, self.kind, self.rejuvenation = noise, kind, rejuvenation
        self.buffer = ReplayBuffer(noise.sample(capacity, generator)) if kind in BUFFERED else None

    def draw(self, n: int, data: Tensor | None = None, generator: torch.Generator | None = None) -> Starts:
        """``n`` starts; ``data`` ``(B, *event)`` is needed only for the kind ``data``, and repeated when n > B.

        Raises:
            InputError: The buffer holds fewer than ``n`` chains, or the kind is ``data`` and none are given.
        """
        if self.kind == "data":
            if data is None:
                raise InputError("chains that start from data need data")
            rows = torch.arange(n, device=data.device) % len(data)
            return Starts(data.detach()[rows], None)
        if self.buffer is None:
            return Starts(self.noise.sample(n, generator), None)
        slots, x = self.buffer.draw(n, generator)
        if self.rejuvenation == 0:
            return Starts(x, slots)
        fresh = self.noise.sample(n, generator).to(x.dtype)
        coins = torch.rand(n, generator=generator, device=x.device) < self.rejuvenation
        return Starts(torch.where(coins.view(-1, *[1] * (x.ndim - 1)), fresh, x), slots)

    def store(
        self, x: Tensor, finite: Tensor, slots: Tensor | None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Write the ends ``x`` ``(n, *event)`` to the slots that their starts came from, and return them.

        Chains that are not ``finite`` ``(n,)`` are replaced by draws from the noise law, or, if they are reweighted, by
        their own starts.
        """
        if self.kind == "reweighted" and self.buffer is not None and slots is not None:
            restarts = self.buffer.samples[slots]
        else:
            restarts = self.noise.sample(len(x), generator).to(x.dtype)
        x = torch.where(finite.view(-1, *[1] * (x.ndim - 1)), x, restarts)
        if self.buffer is not None and slots is not None:
            self.buffer.write(slots, x)
        return x
