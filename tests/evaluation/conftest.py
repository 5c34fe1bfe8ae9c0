import pytest
import torch
from torch import nn

from adance.data import load_data


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """A cache folder of the tests' own, shared by the tests of one session."""
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv("TORCH_HOME", str(folder / "torch"))
    return folder


@pytest.fixture(scope="session")
def digits():
    return load_data("digits")


@pytest.fixture(scope="session")
def features():
    """Two full-rank sets of features ``(700, 12)`` and ``(500, 12)`` of correlated laws."""
    generator = torch.Generator().manual_seed(3)
    mixing = torch.randn(12, 12, generator=generator, dtype=torch.float64)
    a = torch.randn(700, 12, generator=generator, dtype=torch.float64) @ mixing
    b = 1.3 * torch.randn(500, 12, generator=generator, dtype=torch.float64) @ mixing.T + 0.5
    return a, b


class StandIn(nn.Module):
    """Takes the place of Inception's file: the same calls, the same types, little else."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.register_buffer("features", torch.randn(3 * 64, 2048, generator=generator) / 500)
        self.register_buffer("classes", torch.randn(2048, 1008, generator=generator))

    def forward(self, img: torch.Tensor, return_features: bool = False, no_output_bias: bool = False) -> torch.Tensor:
        assert img.dtype == torch.uint8
        assert img.shape[1] == 3
        features = img.flatten(1).float() @ self.features
        if return_features:
            return features
        logits = features @ self.classes
        return torch.softmax(logits if no_output_bias else logits + 1.0, 1)


@pytest.fixture
def stand_in():
    return torch.jit.script(StandIn())
