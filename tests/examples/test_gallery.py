"""Examples that draw and print: what they print is right, and each makes a picture."""

import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run an example; returns what it printed and left."""
    plt.switch_backend("agg")

    def run_example(name):
        monkeypatch.chdir(tmp_path)
        with torch.random.fork_rng():
            left = runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert plt.get_fignums(), "no picture"
        return capsys.readouterr().out, left

    yield run_example
    plt.close("all")


def test_outliers_are_found_and_explained(run):
    out, _ = run("outliers.py")
    assert float(re.search(r"AUROC ([\d.]+)", out)[1]) > 0.95
    assert int(re.search(r"for (\d+) of 10", out)[1]) >= 9


def test_weights_help_under_covariate_shift(run):
    out, _ = run("covariate_shift.py")
    assert float(re.search(r"exact one ([\d.]+)", out)[1]) > 0.95
    plain, weighted = map(float, re.search(r"plain ([\d.]+), weighted ([\d.]+)", out).groups())
    assert weighted < 0.2 * plain


def test_completed_digits_keep_what_was_given(run):
    _, left = run("images_completed.py")
    completed, digits = left["completed"], left["digits"]
    assert torch.equal(completed[:, :, :, :14], digits[:, :, :, :14])
    assert not torch.equal(completed, digits)


def test_every_example_has_a_title_and_shows_a_picture():
    for path in EXAMPLES.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert re.match(r'"""\n.+\n=+\n', text), path.name
        assert "plt.show()" in text, path.name


def test_a_lightning_module_learns(run):
    pytest.importorskip("lightning")
    out, left = run("lightning_module.py")
    held_out, square = map(
        float, re.search(r"held-out data (-?[\d.]+), points from the square (-?[\d.]+)", out).groups()
    )
    assert square > held_out + 1
    module = left["module"]
    assert left["trainer"].global_step == 600
    assert module.objective.energy_gradients > 0
    assert {"auc", "energy_data"} <= left["trainer"].callback_metrics.keys()
