"""Ctrl-C that waits for the end of a training step."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("adance")


@contextmanager
def interrupt_flag() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets; a second one interrupts at once.

    Outside the main thread the event is never set.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        log.warning("interrupted: writing a checkpoint")
        asked.set()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
