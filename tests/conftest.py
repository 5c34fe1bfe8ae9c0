import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    """Networks are initialised from the global generator: the same ones in every run."""
    torch.manual_seed(0)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)
