"""Where chains start: noise, data, or the ends of earlier chains (persistent, rejuvenated or reweighted), kept."""

from typing import Literal, NamedTuple, get_args, overload

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
        condition: The conditions of the chains ``(n, *condition)``, if the energy is conditional.
    """

    x: Tensor
    slots: Tensor | None
    condition: Tensor | None = None


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

    Each chain of a conditional energy has a condition, which it keeps until it restarts.

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
        condition: Conditions ``(M, *condition)`` of the first chains in the buffer, used in turn, if the energy is
            conditional.

    Raises:
        InputError: The kind is unknown, R is not in [0, 1] or given for another kind, or the capacity is below 1.
    """

    conditions: Tensor | None

    def __init__(
        self,
        noise: Density,
        kind: StartKind = "rejuvenated",
        rejuvenation: float = 0.0,
        capacity: int = 5000,
        generator: torch.Generator | None = None,
        condition: Tensor | None = None,
    ) -> None:
        super().__init__()
        check_starts(kind, rejuvenation, capacity)
        self.noise, self.kind, self.rejuvenation = noise, kind, rejuvenation
        self.buffer = ReplayBuffer(noise.sample(capacity, generator)) if kind in BUFFERED else None
        self.register_buffer("conditions", _in_turn(condition, capacity) if self.buffer is not None else None)

    def sample(
        self,
        n: int,
        data: Tensor | None = None,
        generator: torch.Generator | None = None,
        condition: Tensor | None = None,
    ) -> Starts:
        """``n`` starts.

        Args:
            n: Number of chains.
            data: Data ``(B, *event)``, needed only for the kind ``data``; used in turn.
            generator: Source of randomness.
            condition: Conditions ``(M, *condition)`` for chains that do not come from the buffer, used in turn, if the
                energy is conditional.

        Raises:
            InputError: The buffer holds fewer than ``n`` chains, or the kind is ``data`` and ``data`` is ``None``.
        """
        new = _in_turn(condition, n)
        if self.kind == "data":
            if data is None:
                raise InputError("start='data' needs data: pass a batch")
            return Starts(_in_turn(data.detach(), n), None, new)
        if self.buffer is None:
            return Starts(self.noise.sample(n, generator), None, new)
        slots, x = self.buffer.sample(n, generator)
        old = None if self.conditions is None else self.conditions[slots]
        if self.rejuvenation == 0:
            return Starts(x, slots, old)
        fresh = self.noise.sample(n, generator).to(x.dtype)
        coins = torch.rand(n, generator=generator, device=x.device) < self.rejuvenation
        either = old if new is None or old is None else where_rows(coins, new, old)
        return Starts(where_rows(coins, fresh, x), slots, either)

    def store(
        self,
        x: Tensor,
        finite: Tensor,
        slots: Tensor | None,
        generator: torch.Generator | None = None,
        condition: Tensor | None = None,
    ) -> Tensor:
        """Write the ends ``x`` ``(n, *event)`` to the slots that their starts came from, and return them.

        Their conditions ``(n, *condition)``, if the energy is conditional, are written too.

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
        if self.conditions is not None and condition is not None and slots is not None:
            self.conditions[slots] = condition
        return x


@overload
def _in_turn(rows: Tensor, n: int) -> Tensor: ...


@overload
def _in_turn(rows: None, n: int) -> None: ...


def _in_turn(rows: Tensor | None, n: int) -> Tensor | None:
    """``n`` of the ``rows``, one after another, from the first again after the last."""
    return None if rows is None else rows[torch.arange(n, device=rows.device) % len(rows)]
