"""What a command sets for its whole process and undoes at the end: log output, warnings, memory, denormal numbers."""

import ctypes
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

log = logging.getLogger("adance")

TRIM_THRESHOLD, MMAP_MAX = -1, -4
"""``M_TRIM_THRESHOLD`` and ``M_MMAP_MAX`` of glibc's ``mallopt``."""

NEVER, DEFAULT_TRIM, DEFAULT_MMAPS = -1, 64 << 20, 65536


@contextmanager
def process_settings(level: int = logging.INFO) -> Iterator[None]:
    """Log to standard error from ``level`` on, reuse freed memory and flush denormals, until the block ends."""
    with log_to_stderr(level), reuse_freed_memory(), flush_denormals():
        yield


def log_level(argv: Sequence[str]) -> int:
    """The level that ``--quiet`` or ``--verbose`` on a command line asks for.

    With several processes, which launchers number by ``RANK``, all but the first log only errors.
    """
    if os.environ.get("RANK", "0") != "0":
        return logging.ERROR
    if "--quiet" in argv:
        return logging.WARNING
    return logging.DEBUG if "--verbose" in argv else logging.INFO


class _StderrHandler(logging.Handler):
    """Writes to the current ``sys.stderr``, which a progress bar replaces in order to print above itself."""

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        prefix = "adance: warning: " if record.levelno == logging.WARNING else ""
        with suppress(OSError):  # a full or closed standard error does not stop the work
            print(f"{prefix}{text}", file=sys.stderr, flush=True)


def open_streams() -> bool:
    """Make standard output and standard error accept any text, and return whether there is a standard output.

    Characters that the encoding of standard output lacks are replaced. If standard error is closed, log messages are
    lost.
    """
    if sys.stderr is None:
        while (handle := os.open(os.devnull, os.O_RDWR)) < 2:  # files must not get the descriptors of standard streams
            pass
        sys.stderr = os.fdopen(handle, "w", encoding="utf-8")
    if sys.stdout is None:
        return False
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    return True


@contextmanager
def log_to_stderr(level: int) -> Iterator[None]:
    """Send the log of ``adance``, from ``level`` on, and Python's warnings to standard error."""
    handler, level_before, show_before = _StderrHandler(), log.level, warnings.showwarning
    matplotlib = logging.getLogger("matplotlib")
    matplotlib_before = matplotlib.level
    matplotlib.setLevel(logging.ERROR)  # it warns at length if it cannot write its cache, and works without it
    log.addHandler(handler)
    log.setLevel(level)
    warnings.showwarning = _log_warning
    try:
        yield
    finally:
        warnings.showwarning = show_before
        log.setLevel(level_before)
        log.removeHandler(handler)
        matplotlib.setLevel(matplotlib_before)


def _log_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    """Log a warning for users in one line; others, such as deprecations in libraries, only with ``--verbose``."""
    text = " ".join(str(message).split())
    if issubclass(category, UserWarning):
        log.warning(text)
    else:
        log.debug("%s:%d: %s: %s", filename, lineno, category.__name__, text)


@contextmanager
def reuse_freed_memory() -> Iterator[None]:
    """Under glibc, keep freed memory for the next allocation instead of returning it to the system until the end.

    By default glibc maps every activation of a convolutional net as new pages, which the system clears, in every layer
    of every step. That takes up to a fifth of the time on the CPU. The peak of memory is the same.
    """
    libc = _glibc()
    if libc is None:
        yield
        return
    libc.mallopt(TRIM_THRESHOLD, NEVER)
    libc.mallopt(MMAP_MAX, 0)
    try:
        yield
    finally:
        libc.mallopt(TRIM_THRESHOLD, DEFAULT_TRIM)
        libc.mallopt(MMAP_MAX, DEFAULT_MMAPS)
        libc.malloc_trim(0)


@contextmanager
def flush_denormals() -> Iterator[None]:
    """Compute with 0 instead of denormal numbers, which slow some processors down tens of times, until the block ends.

    The flag belongs to a thread; torch's worker threads take it over when they start, at the first parallel operation.
    """
    import torch  # only here, so that help does not wait for it

    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def _glibc() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
