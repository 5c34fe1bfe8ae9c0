import pytest

from adance.cli import main

CONFIG = """
data: digits
energy: {class_path: adance.MLP, init_args: {hidden: [16]}}
objective:
  class_path: adance.AdaNCE
  init_args:
    interval: 5
    pool: 16
    buffer: 32
    sampler: {class_path: adance.Langevin, init_args: {steps: 2, step_size: 1.0, noise_std: 0.005}}
steps: 20
batch_size: 16
log_every: 5
sample_every: 0
device: cpu
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def sweep(config, tmp_path, capsys):
    """Run ``adance sweep`` in this process; returns its exit status and the table it printed."""

    def run(*options: str, out: str = "sweep") -> tuple[int, list[str], str]:
        status = main(["sweep", "--config", str(config), "--out", str(tmp_path / out), *options])
        printed = capsys.readouterr()
        return status, [line for line in printed.out.splitlines() if line.startswith("|")], printed.err

    return run


@pytest.fixture(scope="session")
def short_sweep(tmp_path_factory):
    """The folder of a finished sweep of two runs; it is only read."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "config.yaml").write_text(CONFIG)
    options = ["--over", "seed=0,1", "--steps", "1", "--out", str(folder / "sweep")]
    assert main(["sweep", "--config", str(folder / "config.yaml"), *options]) == 0
    return folder / "sweep"
