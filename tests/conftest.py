import pytest
import torch
from hypothesis import settings

from adance.registry import trust_restored

settings.register_profile("same", derandomize=True)
settings.load_profile("same")


@pytest.fixture(autouse=True)
def seeded():
    """Networks are initialised from the global generator: the same ones in every run."""
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
