"""Freed memory that the process keeps for the next step."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

TRIM_THRESHOLD, MMAP_MAX = -1, -4
"""``M_TRIM_THRESHOLD`` and ``M_MMAP_MAX`` of glibc's ``mallopt``."""

NEVER, DEFAULT_TRIM, DEFAULT_MMAPS = -1, 64 << 20, 65536

_open = 0
"""How many contexts are inside each other: only the outermost gives memory back."""


@contextmanager
def kept_memory(device: torch.device) -> Iterator[None]:
    """Keep what is freed inside, on the CPU and under glibc; given back to the system at the end.

    Activations of a convolutional net are larger than what glibc keeps by default: every one of them is mapped anew and
    its pages cleared, in every layer of every step, which takes up to a fifth of the time. The peak is the same.
    """
    global _open
    libc = _glibc()
    if libc is None or device.type != "cpu":
        yield
        return
    libc.mallopt(TRIM_THRESHOLD, NEVER)
    libc.mallopt(MMAP_MAX, 0)
    _open += 1
    try:
        yield
    finally:
        _open -= 1
        if _open == 0:
            libc.mallopt(TRIM_THRESHOLD, DEFAULT_TRIM)
            libc.mallopt(MMAP_MAX, DEFAULT_MMAPS)
            libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
