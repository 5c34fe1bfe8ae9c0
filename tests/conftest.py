import os

import pytest
import torch
from hypothesis import settings

from adance.registry import trust_restored

pytest_plugins = ["browser"]
settings.register_profile("same", derandomize=True)
settings.load_profile("same")


def pytest_configure(config):
    """One thread in each process, and one cache of compiled programs for all processes of the test run."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    cache = getattr(config, "cache", None)
    if cache is not None:
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache.mkdir("inductor")))


@pytest.fixture(autouse=True)
def seeded():
    """Networks are initialized from the global generator: the same ones in every run."""
    torch.manual_seed(0)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True)
def trust_nothing(monkeypatch):
    """No test trusts what another did."""
    monkeypatch.delenv("ADANCE_TRUST", raising=False)
    with trust_restored():
        yield


def pytest_collection_modifyitems(items):
    """Start with the pages of the docs, which take longest, so that no process waits for one at the end."""
    items.sort(key=lambda item: "test_pages" not in item.nodeid)
