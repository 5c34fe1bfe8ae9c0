"""Where chains start: noise, data, or the ends of earlier chains (persistent, rejuvenated or reweighted), kept."""

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from adance.energies.analytic import Density
from adance.errors import InputError
from adance.numbers import check_count, check_real
from adance.samplers.buffer import ReplayBuffer
from adance.samplers.rows import where_rows

StartKind = Literal["noise", "data", "persistent", "rejuvenated", "reweighted"]
BUFFERED = ("persistent", "rejuvenated", "reweighted")


class Starts(NamedTuple):
    """Starts of chains.

    Attributes:
        x: Positions ``(n, *event)``.
        slots: Slots of the buffer that they came from ``(n,)``; ``None`` without a buffer.
    """

    x: Tensor
    slots: Tensor | None


def check_starts(kind: str, rejuvenation: float, capacity: int) -> None:
    """Check the settings of :class:`ChainStarts`.

    Raises:
        InputError: ``kind`` is unknown, ``rejuvenation`` outside [0, 1] or given for another kind, or ``capacity``
            below 1.
    """
    if kind not in get_args(StartKind):
        raise InputError(f"unknown start {kind!r}: use one of {', '.join(get_args(StartKind))}")
    check_real("rejuvenation", rejuvenation, 0)
    if rejuvenation > 1:
        raise InputError(f"rejuvenation must be at most 1, got {rejuvenation}")
    if kind != "rejuvenated" and rejuvenation > 0:
        raise InputError(f"rejuvenation={rejuvenation} needs start='rejuvenated', got start={kind!r}")
    check_count("buffer", capacity)


def runs_since_noise(kind: StartKind, rejuvenation: float) -> float | None:
    """Mean number of runs of the chains since their start from noise, at the end of a run.

    It is 1/R if a chain restarts with probability R before each run. ``None`` if chains do not restart.
    """
    if kind == "noise":
        return 1.0
    return 1 / rejuvenation if rejuvenation > 0 else None


class ChainStarts(nn.Module):
    """Chooses the starts of a batch of chains and stores their ends.

    Args:
        noise: The distribution of fresh starts; the buffer is filled from it.
        kind: ``noise``: every chain starts from the noise distribution. ``data``: from data (contrastive divergence).
            ``persistent``: from the ends of earlier chains. ``rejuvenated``: the same, but each chain restarts from
            noise with probability R (thesis 3.2.1). ``reweighted``: from the ends of earlier chains, resampled at each
            change of the model by how much likelier the new model makes them (Jarzynski's equality; Carbone et al.
            2023).
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

    def sample(self, n: int, data: Tensor | None = None, generator: torch.Generator | None = None) -> Starts:
        """``n`` starts; ``data`` ``(B, *event)`` is needed only for the kind ``data``, and repeated if n > B.

        Raises:
            InputError: The buffer holds fewer than ``n`` chains, or the kind is ``data`` and ``data`` is ``None``.
        """
        if self.kind == "data":
            if data is None:
                raise InputError("start='data' needs data: pass a batch")
            rows = torch.arange(n, device=data.device) % len(data)
            return Starts(data.detach()[rows], None)
        if self.buffer is None:
            return Starts(self.noise.sample(n, generator), None)
        slots, x = self.buffer.sample(n, generator)
        if self.rejuvenation == 0:
            return Starts(x, slots)
        fresh = self.noise.sample(n, generator).to(x.dtype)
        coins = torch.rand(n, generator=generator, device=x.device) < self.rejuvenation
        return Starts(where_rows(coins, fresh, x), slots)

    def store(
        self, x: Tensor, finite: Tensor, slots: Tensor | None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Write the ends ``x`` ``(n, *event)`` to the slots that their starts came from, and return them.

        Chains that are not ``finite`` ``(n,)`` are replaced by draws from the noise distribution, or, if they are
        reweighted, by their own starts.
        """
        if self.kind == "reweighted" and self.buffer is not None and slots is not None:
            restarts = self.buffer.samples[slots]
        else:
            restarts = self.noise.sample(len(x), generator).to(x.dtype)
        x = where_rows(finite, x, restarts)
        if self.buffer is not None and slots is not None:
            self.buffer.write(slots, x)
        return x
