"""Ctrl-C that waits for the end of a step."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupt_flag() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; a second one interrupts at once. Outside the main thread it is never set."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        print("interrupted: writing a checkpoint", file=sys.stderr)
        asked.set()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
