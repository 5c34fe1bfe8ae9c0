import shutil

import pytest
import torch

from adance.data import Dataset, Standardize, load_data
from adance.energies import MLP
from adance.objectives import NCE, AdaNCE
from adance.samplers import Langevin
from adance.training import Settings, Trainer

NUMBERS = {"steps": 40, "batch_size": 16, "log_every": 2, "sample_every": 20, "checkpoint_every": 20}


def train(energy, objective, data, out):
    Trainer(energy, objective, data, Settings(**NUMBERS), out, device="cpu", show_progress=False).fit()
    return out


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Small finished runs by kind; they are only read."""
    home = tmp_path_factory.mktemp("runs")
    torch.manual_seed(0)
    rows = torch.randn(300, 3, generator=torch.Generator().manual_seed(5))
    points = Dataset("points", "vector", rows[:200], rows[200:], Standardize.fit(rows[:200]))
    short = Langevin(steps=10, step_size=1.0, noise_std=0.005)
    digits = AdaNCE(short, interval=5, pool=32, buffer=64)
    return {
        "image": train(MLP((1, 8, 8), [16]), digits, load_data("digits"), home / "image"),
        "plane": train(MLP((2,), [16]), NCE(), load_data("moons"), home / "plane"),
        "vector": train(MLP((3,), [16]), NCE(), points, home / "vector"),
    }


@pytest.fixture
def run_folder(trained, tmp_path):
    """A copy of a finished run, to write to."""
    return lambda kind: shutil.copytree(trained[kind], tmp_path / kind)
