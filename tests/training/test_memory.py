import resource
import sys
from types import SimpleNamespace

import pytest
import torch

from adance.training import memory
from adance.training.memory import kept_memory

SIZE = 64 << 20
PAGES = SIZE // resource.getpagesize()

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what glibc keeps")


def pages_of_a_second_use() -> int:
    """Pages that the system maps when memory as large as one just freed is filled."""
    torch.ones(SIZE, dtype=torch.uint8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(SIZE, dtype=torch.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def test_freed_memory_is_used_again_inside():
    # a small allocation may take the rim of the freed block, so that the next use needs another: not every time
    with kept_memory(torch.device("cpu")):
        assert min(pages_of_a_second_use() for _ in range(5)) < PAGES // 10


def test_one_inside_another_leaves_it_kept():
    with kept_memory(torch.device("cpu")):
        with kept_memory(torch.device("cpu")):
            pass
        assert min(pages_of_a_second_use() for _ in range(5)) < PAGES // 10


def test_it_is_given_back_at_the_end():
    with kept_memory(torch.device("cpu")):
        torch.ones(4 * SIZE, dtype=torch.uint8)
        held = resident()
    assert resident() < held - 3 * SIZE


def test_another_device_changes_nothing(monkeypatch):
    # what a process has freed before decides how many pages it maps, so the settings are looked at themselves
    settings = []
    libc = SimpleNamespace(mallopt=lambda *of: settings.append(of), malloc_trim=lambda rim: settings.append(rim))
    monkeypatch.setattr(memory, "_glibc", lambda: libc)
    with kept_memory(torch.device("meta")):
        pass
    assert not settings
    with kept_memory(torch.device("cpu")):
        assert settings
