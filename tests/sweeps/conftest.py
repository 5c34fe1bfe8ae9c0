import pytest

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
    from adance.cli import main

    def run(*options: str, out: str = "sweep") -> tuple[int, list[str], str]:
        status = main(["sweep", "--config", str(config), "--out", str(tmp_path / out), *options])
        printed = capsys.readouterr()
        return status, [line for line in printed.out.splitlines() if line.startswith("|")], printed.err

    return run
