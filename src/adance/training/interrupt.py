"""Ctrl-C, SIGTERM and SIGHUP wait for the end of a training step."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from adance.signals import Interrupted, handled_by, name_of, received

log = logging.getLogger("adance")


class InterruptFlag(threading.Event):
    """Set by the first signal that asks the process to end; ``number`` is the signal's."""

    number: int = signal.SIGINT

    def raise_if_set(self) -> None:
        """Raise :class:`~adance.signals.Interrupted` if the flag is set."""
        if self.is_set():
            raise Interrupted(self.number)


@contextmanager
def interrupt_flag() -> Iterator[InterruptFlag]:
    """Yield a flag that the first Ctrl-C, SIGTERM or SIGHUP sets; a second one interrupts at once.

    Outside the main thread the flag is never set.
    """
    flag = InterruptFlag()

    def ask(number: int, frame: FrameType | None) -> None:
        if flag.is_set():
            raise Interrupted(number)
        flag.number = number
        flag.set()
        by = "" if number == signal.SIGINT else f" by {name_of(number)}"
        log.warning(f"interrupted{by}: writing a checkpoint")

    earlier = received()  # raised during start-up, and swallowed by the library that it interrupted
    if earlier is not None:
        flag.number = earlier
        flag.set()
    # a shell starts a background process with Ctrl-C ignored, and `kill -INT` must still stop it
    with handled_by(ask, also_ignored=(signal.SIGINT,)):
        yield flag
