"""Objectives in whole runs: resumed exactly, and named on the command line."""

import numpy as np
import pytest
import torch

from adance import Settings, Trainer, load
from adance.cli import main
from adance.data import load_data
from adance.energies import MLP
from adance.objectives import (
    ContrastiveDivergence,
    DenoisingScoreMatching,
    MaximumLikelihood,
    PersistentCD,
    ScoreMatching,
)
from adance.samplers import MALA

MAKERS = {
    "MaximumLikelihood": lambda: MaximumLikelihood(MALA(2), buffer=40),
    "ContrastiveDivergence": lambda: ContrastiveDivergence(2, MALA(3)),
    "PersistentCD": lambda: PersistentCD(2, MALA(3)),
    "ScoreMatching": ScoreMatching,
    "ScoreMatching sliced": lambda: ScoreMatching("sliced", projections=2, directions="gaussian"),
    "ScoreMatching finite_difference": lambda: ScoreMatching("finite_difference"),
    "DenoisingScoreMatching": lambda: DenoisingScoreMatching([0.1, 0.3], [1.0, 2.0]),
}


@pytest.fixture
def data_file(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.random.default_rng(0).normal(size=(80, 3)).astype("float32"))
    return str(path)


def trained(data_file, folder, name, steps):
    settings = Settings(steps=steps, batch_size=16, lr=1e-2, log_every=2, checkpoint_every=100)
    data, energy = load_data(data_file), MLP((3,), (8, 8))
    return Trainer(energy, MAKERS[name](), data, settings, folder, device="cpu", show_progress=False).fit()


@pytest.mark.parametrize("name", MAKERS)
def test_a_resumed_run_is_the_run(data_file, tmp_path, name):
    torch.manual_seed(1)
    whole = trained(data_file, tmp_path / "whole", name, 9)
    torch.manual_seed(1)
    trained(data_file, tmp_path / "parts", name, 4)
    resumed = Trainer.resume(tmp_path / "parts", steps=9, device="cpu", show_progress=False).fit()
    for one, two in zip(whole.energy.state_dict().values(), resumed.energy.state_dict().values(), strict=True):
        assert torch.equal(one, two)
    files = [folder / "checkpoints" for folder in (tmp_path / "whole", tmp_path / "parts")]
    last = [sorted(folder.iterdir())[-1] for folder in files]
    for part in ("energy", "objective", "optimizer", "random"):
        assert (last[0] / f"{part}.safetensors").read_bytes() == (last[1] / f"{part}.safetensors").read_bytes()
    sample = load(tmp_path / "parts").sample(4, steps=3)
    assert torch.equal(sample, load(tmp_path / "whole").sample(4, steps=3))


@pytest.mark.parametrize("name", sorted({name.partition(" ")[0] for name in MAKERS}))
def test_names_serve_on_the_command_line(data_file, tmp_path, name, capsys):
    folder = tmp_path / "run"
    args = ["--data", data_file, "--objective", name, "--energy.hidden", "[8]", "--steps", "2", "--batch_size", "16"]
    assert main(["train", *args, "--out", str(folder), "--device", "cpu", "--quiet"]) == 0
    assert str(folder) in capsys.readouterr().out
    config = (folder / "config.yaml").read_text()
    assert f".{name}" in config
    assert (folder / "metrics.jsonl").read_text().count('"loss"') == 1


def test_refusals_are_one_line_on_the_command_line(data_file, tmp_path, capsys):
    args = ["train", "--data", data_file, "--energy.hidden", "[8]", "--energy.activation", "relu", "--quiet"]
    args += ["--batch_size", "16", "--device", "cpu", "--out", str(tmp_path / "run")]
    assert main([*args, "--objective", "ScoreMatching"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "ReLU" in message
    assert not (tmp_path / "run").exists()
