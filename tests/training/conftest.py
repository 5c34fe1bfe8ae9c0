from pathlib import Path

import pytest
import torch
from child_processes import TINY, end_of, finish

from adance.data import Dataset, ImageScale, Standardize, load_data
from adance.energies import MLP
from adance.objectives import NCE, AdaNCE
from adance.samplers import MALA, Langevin
from adance.training import Settings, Trainer


@pytest.fixture(scope="session")
def digits():
    return load_data("digits")


@pytest.fixture
def points():
    """Points of a correlated law in space, of which no picture is drawn, in units of their own."""
    z = torch.randn(700, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    rows = torch.stack([3 * z[:, 0] + 10, 0.2 * (0.8 * z[:, 0] + 0.6 * z[:, 1]) - 4, 7 * z[:, 2]], 1)
    return Dataset("points", "vector", rows[:600], rows[600:], Standardize.fit(rows[:600]))


@pytest.fixture
def pictures():
    """Gray pictures of 3×4 pixels, each with its own values, so that a row can be identified by its pixels."""
    rows = torch.arange(2 * 50 * 12).remainder(251).to(torch.uint8).view(-1, 1, 3, 4)[:60]
    return Dataset("pictures", "image", rows[:50], rows[50:], ImageScale(0, 255, 256, 12))


@pytest.fixture
def parts():
    """Energy and objective of one kind of training, the same weights at every call."""

    def make(kind: str):
        torch.manual_seed(1)
        if kind == "image":
            sampler = Langevin(steps=3, step_size=1.0, noise_std=0.005)
            return MLP((1, 8, 8), [16]), AdaNCE(sampler, interval=50, pool=64, buffer=128)
        if kind == "vector":
            return MLP((3,), [16]), AdaNCE(MALA(steps=3, step_size=0.02), interval=50, pool=64, buffer=128)
        return MLP((3,), [16]), NCE()

    return make


@pytest.fixture
def train(tmp_path, parts, digits, points):
    """Train one kind into a folder of ``tmp_path``; returns the trainer."""

    def run(kind: str, out: str | Path = "run", **settings):
        energy, objective = parts(kind)
        numbers = {"steps": 20, "batch_size": 16, "log_every": 5, "checkpoint_every": 10, "lr": 1e-3, **settings}
        trainer = Trainer(
            energy,
            objective,
            digits if kind == "image" else points,
            Settings(**numbers),
            tmp_path / out,
            device="cpu",
            show_progress=False,
        )
        trainer.fit()
        return trainer

    return run


@pytest.fixture
def tensor_bytes():
    """The bytes of every tensor file of the last checkpoint of a run, by name."""

    def read(folder: Path) -> dict[str, bytes]:
        last = sorted((folder / "checkpoints").iterdir())[-1]
        return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}

    return read


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory):
    """What runs of this many steps end with."""
    ends = {}

    def run(steps):
        if steps not in ends:
            out = tmp_path_factory.mktemp("whole") / "run"
            assert finish([*TINY, "--steps", steps, "--out", out]) == 0
            ends[steps] = end_of(out)
        return ends[steps]

    return run
