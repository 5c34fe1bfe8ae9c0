"""When a snapshot is refreshed: every K optimizer steps, or when little is left to learn from it."""

from typing import Literal

from adance.errors import InputError
from adance.noises.noise import Separation
from adance.numbers import is_whole

Interval = int | Literal["auto"]

LONGEST = 50
"""With ``auto``, the number of optimizer steps after which a snapshot is refreshed in any case."""

STALE_WEIGHT = 0.2
"""With ``auto``, a snapshot is stale when the weight of data has fallen to this share of its first value."""

MIN_EFFECTIVE_SHARE = 0.5
"""With ``auto`` and reweighted chains, a snapshot is stale when their effective share would fall below this."""

SHORTEST, MEMORY = 4, 0.8
"""With ``auto`` and reweighted chains, the learning rate falls while snapshots last for less than this many steps: the
last one, and the running geometric mean of all, to which each contributes a share of 1 − ``MEMORY``."""

LOWER, RAISE, LOWEST = 0.5, 1.2, 1e-3
"""The factors by which the learning rate falls at most, and rises, at a refresh; and the lowest factor in all."""


def check_interval(interval: object) -> None:
    """Check an interval.

    Raises:
        InputError: ``interval`` is neither ``auto`` nor a whole number of at least 1.
    """
    if not (interval == "auto" or (is_whole(interval) and interval >= 1)):  # type: ignore[operator]
        raise InputError(f"interval must be a number of optimizer steps, at least 1, or 'auto', got {interval!r}")


def longest_interval(interval: Interval) -> int:
    """K, or its maximum with ``auto``."""
    return LONGEST if interval == "auto" else int(interval)


class RefreshRule:
    """Counts steps and refreshes, and says when the next one is due.

    Args:
        interval: K ≥ 1, or ``auto``.
        reweights: Whether chains are reweighted at each refresh, which decides what ``auto`` depends on.
        last: The step after which K is 1, if there is one.

    Raises:
        InputError: ``interval`` is neither ``auto`` nor a whole number of at least 1.

    Attributes:
        adaptive: Whether the interval is ``auto``.
        interval: K; with ``auto`` its maximum.
        count: Refreshes so far.
        finishing: Whether K is 1 by now.
        lr_factor: Factor of the learning rate, at most 1. With ``auto`` and reweighted chains it is adapted at each
            refresh so that snapshots last for about 4 steps or more; otherwise it is 1.
    """

    def __init__(self, interval: Interval, reweights: bool = False, last: int | None = None) -> None:
        check_interval(interval)
        self.adaptive, self.interval, self.reweights = interval == "auto", longest_interval(interval), reweights
        self.age, self.count, self._first_weight, self.lr_factor = 0, 0, 0.0, 1.0
        self._typical_age = float(SHORTEST)
        self.last, self.finishing = last, last == 0

    def due(self, step: int, separation: Separation) -> bool:
        """Whether to refresh after optimizer step number ``step``, counted from 1, whose batch has this ``separation``.

        With ``auto`` it waits for the device. A finished run that gets more steps refreshes after the first of them,
        since its pool is older than the last phase.
        """
        finished, self.finishing = self.finishing, self.last is not None and step >= self.last
        stale = self.finishing or finished or (self.adaptive and self._is_stale(separation))
        self.age += 1
        due = stale or (self.age >= self.interval if self.adaptive else step % self.interval == 0)
        if due:
            if self.adaptive and self.reweights and not (self.finishing or finished):
                self._adapt_rate()
            self.age, self.count = 0, self.count + 1
        return due

    def _is_stale(self, separation: Separation) -> bool:
        if self.reweights:
            return bool(separation.noise_share() < MIN_EFFECTIVE_SHARE)
        weight = float(separation.data_weight())
        if self.age == 0:
            self._first_weight = weight
        return weight < STALE_WEIGHT * self._first_weight

    def _adapt_rate(self) -> None:
        """Lower the factor of the learning rate if snapshots do not last, and otherwise raise it towards 1."""
        self._typical_age = self._typical_age**MEMORY * self.age ** (1 - MEMORY)
        too_short = max(self._typical_age, self.age) < SHORTEST
        change = max(self._typical_age / SHORTEST, LOWER) if too_short else RAISE
        self.lr_factor = min(1.0, max(LOWEST, self.lr_factor * change))

    def state(self) -> list[float]:
        """The state, to continue from here."""
        return [self.age, self.count, self._first_weight, self.finishing, self.lr_factor, self._typical_age]

    def restore(self, state: list[float]) -> None:
        """Continue from :meth:`state`."""
        age, count, self._first_weight, finishing, self.lr_factor, self._typical_age = state
        self.age, self.count, self.finishing = int(age), int(count), bool(finishing)
