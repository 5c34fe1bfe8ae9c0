"""When a snapshot is taken anew: every K optimiser steps, or when it has served."""

from collections.abc import Callable
from typing import Literal

from torch import Tensor

from adance.errors import InputError
from adance.numbers import is_whole

Interval = int | Literal["auto"]

LONGEST = 50
"""Optimiser steps after which a snapshot that has not served yet is taken anew all the same."""

SERVED = 0.2
"""A snapshot has served when data pull at this share of the weight that they began with."""

LEAST_SHARE = 0.5
"""Or, where chains are reweighted, when less than this effective share of them would be left."""


class Refreshes:
    """Counts steps and refreshes, and says when the next is due.

    Args:
        interval: K ≥ 1, ``auto``, or ``None`` for what :meth:`begin` calls usual.

    Raises:
        InputError: The interval is none of them.

    Attributes:
        interval: K; with ``auto`` its greatest value.
        until_served: Whether it is ``auto``.
        count: Refreshes so far.
    """

    def __init__(self, interval: Interval | None) -> None:
        if not (interval is None or interval == "auto" or (is_whole(interval) and interval >= 1)):
            raise InputError(f"interval is a number of optimiser steps, at least 1, or 'auto', got {interval!r}")
        self._given = interval
        self.begin(1)

    def begin(self, usual: Interval) -> None:
        """Count from 0, with the ``usual`` interval where none was given."""
        interval = usual if self._given is None else self._given
        self.until_served = interval == "auto"
        self.interval = LONGEST if interval == "auto" else int(interval)
        self.age, self.count, self._first_pull = 0, 0, 0.0
        self._served = False

    def observe(self, pull: Callable[[], Tensor], share: Callable[[], Tensor], reweights: bool) -> None:
        """Look at a batch, see :meth:`Noise.observe`; what it tells depends on whether chains are reweighted."""
        if not self.until_served:
            return
        if reweights:
            self._served = bool(share() < LEAST_SHARE)
            return
        now = float(pull())
        if self.age == 0:
            self._first_pull = now
        self._served = now < SERVED * self._first_pull

    def due(self, step: int) -> bool:
        """Whether the snapshot is to be taken anew after optimiser step number ``step``, counted from 1."""
        self.age += 1
        due = self._served or self.age >= self.interval if self.until_served else step % self.interval == 0
        if due:
            self.age, self.count = 0, self.count + 1
        return due

    def state(self) -> list[float]:
        """What another needs to go on from here."""
        return [self.age, self.count, self._first_pull]

    def restore(self, state: list[float]) -> None:
        """Go on from :meth:`state`."""
        age, count, self._first_pull = state
        self.age, self.count = int(age), int(count)
