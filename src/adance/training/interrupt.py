"""Makes Ctrl-C, SIGTERM and SIGHUP wait for the end of a training step."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from adance.signals import Interrupted, command_signals, handled_by, name_of

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
    flag, command = InterruptFlag(), command_signals()

    def ask(number: int, frame: FrameType | None) -> None:
        if flag.is_set():
            raise Interrupted(number)
        flag.number = number
        flag.set()
        if command is not None:
            command.waited_for = number
        by = "" if number == signal.SIGINT else f" by {name_of(number)}"
        log.warning(f"interrupted{by}: writing a checkpoint")

    if command is not None and command.received is not None:
        # it came during start-up, and the library that it interrupted swallowed the exception
        flag.number = command.received
        flag.set()
    # a shell starts a background process with Ctrl-C ignored, and `kill -INT` must still stop it
    with handled_by(ask, also_ignored=(signal.SIGINT,)):
        yield flag
