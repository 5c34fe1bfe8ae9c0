import pytest
import torch
from torch import nn

import adance
from adance.data import load_data
from adance.training import Settings, Trainer


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


def trained(folder, data, energy, objective, steps):
    settings = Settings(steps=steps, batch_size=64, lr=1e-3, sample_every=0, ema=0.9)
    return Trainer(energy, objective, data, settings, folder, device="cpu", show_progress=False).fit()


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory, digits):
    torch.manual_seed(0)
    sampler = adance.Langevin(steps=12, step_size=1.0, noise_std=0.005)
    objective = adance.AdaNCE(sampler, interval=20, pool=128, buffer=256)
    return trained(tmp_path_factory.mktemp("digits") / "run", digits, adance.MLP((1, 8, 8), [64]), objective, 60)


@pytest.fixture(scope="session")
def plane_run(tmp_path_factory):
    torch.manual_seed(0)
    objective = adance.AdaNCE(adance.MALA(steps=5), interval=20, pool=128, buffer=256)
    data = load_data("8gaussians")
    return trained(tmp_path_factory.mktemp("plane") / "run", data, adance.MLP((2,), [64, 64]), objective, 150)


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
