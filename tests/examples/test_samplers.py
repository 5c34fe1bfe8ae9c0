import re
import runpy
from pathlib import Path

import matplotlib
import pytest
import torch

matplotlib.use("agg")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(capsys):
    def run_example(name):
        before = torch.get_rng_state()
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert torch.equal(torch.get_rng_state(), before)
        return capsys.readouterr().out

    return run_example


def test_langevin(run):
    found = [(float(a), float(b)) for a, b in re.findall(r"variance ([\d.]+), expected ([\d.]+)", run("langevin.py"))]
    assert len(found) == 4
    for variance, expected in found:
        assert variance == pytest.approx(expected, abs=0.05)


def test_metropolis(run):
    means = re.findall(r"E\[x2\] ([\d.]+)", run("metropolis.py"))
    # Var[x₂] = 2.25: five standard deviations of the mean of 2,000 draws
    assert [float(mean) for mean in means] == pytest.approx([1.0, 1.0], abs=0.17)


def test_hmc(run):
    out = run("hmc.py")
    without, with_mass = map(float, re.search(r"without mass ([\d.]+), with it ([\d.]+)", out).groups())
    assert with_mass > 3 * without


def test_gibbs(run):
    exact, *found = [float(line.split()[-1]) for line in run("gibbs.py").splitlines()]
    assert len(found) == 4
    assert found == pytest.approx([exact] * 4, abs=0.06)


def test_tempering(run):
    plain, tempered = map(float, re.search(r"MALA ([\d.]+), tempered ([\d.]+)", run("tempering.py")).groups())
    assert plain == 0
    assert tempered == pytest.approx(0.75, abs=0.1)


def test_diagnostics(run):
    pytest.importorskip("arviz")
    out = run("diagnostics.py")
    short, long = map(float, re.findall(r"'split_rhat': ([\d.]+)", out))
    assert short > 1.05 > long
    assert "posterior" in out
