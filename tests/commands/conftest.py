import shutil
import sys
from typing import NamedTuple

import pytest
import torch

from adance.cli import main

OPTIONS = (
    "--energy MLP --energy.hidden [8] --objective AdaNCE --objective.sampler Langevin --objective.sampler.steps 2 "
    "--objective.sampler.noise_std 0.005 "
    "--objective.pool 16 --objective.buffer 32 --batch_size 16 --steps 6 --checkpoint_every 3 --log_every 3 "
    "--device cpu --quiet"
)


class Answer(NamedTuple):
    status: int
    out: str
    error: str


@pytest.fixture
def adance(capsys, tmp_path, monkeypatch):
    """The command line, called in an empty folder; a bad end is one line and no traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])  # the command adds to it

    def call(*argv) -> Answer:
        status = main([str(arg) for arg in argv])
        answer = Answer(status, *capsys.readouterr())
        if status:
            assert answer.out == ""
            assert len(answer.error.splitlines()) == 1, answer.error
        return answer

    return call


@pytest.fixture
def tiny(adance):
    """Train on the digits into ``out``; what is given comes last and wins."""

    def train(out, *argv) -> Answer:
        return adance("train", "--data", "digits", *OPTIONS.split(), "--out", out, *argv)

    return train


@pytest.fixture(scope="session")
def session_run(tmp_path_factory):
    """A run on the digits, trained once."""
    folder = tmp_path_factory.mktemp("session") / "run"
    assert main(["train", "--data", "digits", *OPTIONS.split(), "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def trained_run(session_run, adance, tmp_path):
    """A copy of that run in ``run``, as ``tiny("run")`` trains it."""
    return shutil.copytree(session_run, tmp_path / "run")


@pytest.fixture
def rows(tmp_path):
    """A table of three columns of raw numbers, of unequal means and deviations, as ``rows.csv``."""
    z = torch.randn(400, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x = torch.stack([30 + 5 * z[:, 0], -2 + 0.1 * z[:, 1], z[:, 2]], 1)
    (tmp_path / "rows.csv").write_text("".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in x.tolist()))
    return x


@pytest.fixture
def bytes_under(tmp_path):
    """Every file below the current folder, with its bytes."""
    return lambda: {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
