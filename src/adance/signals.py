"""The signals that ask a process to end: Ctrl-C, SIGTERM as clusters send it, and SIGHUP when a session closes."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

Handler = Callable[[int, FrameType | None], None]


class Interrupted(KeyboardInterrupt):
    """A signal asked the process to end.

    Attributes:
        number: The number of the signal; a shell reports the exit status 128 + number.
    """

    def __init__(self, number: int = signal.SIGINT, message: str = "") -> None:
        super().__init__(message or f"interrupted{'' if number == signal.SIGINT else f' by {name_of(number)}'}")
        self.number = int(number)


class EndingSignals:
    """The handler of a command: the first signal raises :class:`Interrupted`, a second one ends the process at once.

    While the command's modules are imported (``importing``), the first one also ends the process: nothing has been
    written that needs cleaning up, and an exception from within an import can take any form.

    Attributes:
        received: The first signal, which counts even if the interrupted library swallowed the exception.
        waited_for: A signal that ended training after its step.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.waited_for: int | None = None
        self.importing = True

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.importing or self.received is not None:
            with suppress(OSError):
                os.write(2, f"adance: error: {Interrupted(number)}\n".encode())
            os._exit(128 + number)
        self.received = number
        raise Interrupted(number)


def name_of(number: int) -> str:
    """The name of a signal, as in ``SIGTERM``."""
    return signal.Signals(number).name


def command_signals() -> EndingSignals | None:
    """The handler of the running command, if there is one."""
    handlers = map(signal.getsignal, ENDING)
    return next((handler for handler in handlers if isinstance(handler, EndingSignals)), None)


def raise_if_received() -> None:
    """Raise :class:`Interrupted` if the running command has received a signal."""
    command = command_signals()
    if command is not None and command.received is not None:
        raise Interrupted(command.received)


@contextmanager
def handled_by(handler: Handler, also_ignored: tuple[int, ...] = ()) -> Iterator[None]:
    """Handle the ending signals with ``handler``; outside the main thread, do nothing.

    Signals that the process was started to ignore, as by ``nohup``, stay ignored unless they are in ``also_ignored``.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    for number, found in before.items():
        if found is not signal.SIG_IGN or number in also_ignored:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, found in before.items():
            signal.signal(number, found)
