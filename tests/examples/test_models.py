import re
import runpy
from pathlib import Path

import matplotlib
import pytest
import torch

matplotlib.use("agg")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    def run_example(name):
        monkeypatch.chdir(tmp_path)
        before = torch.get_rng_state()
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert torch.equal(torch.get_rng_state(), before)
        return capsys.readouterr().out

    return run_example


def test_hopfield_recalls_every_digit_from_its_upper_half(run):
    assert "digits recalled whole: 10 of 10" in run("hopfield.py")


def test_ising_agrees_with_onsager(run):
    rows = [[float(number) for number in line.split()] for line in run("ising.py").splitlines()[1:]]
    assert [row[0] for row in rows] == [0.2, 0.3, 0.4, 0.5]
    # a finite board is near the infinite one, away from the critical coupling 0.44
    assert all(row[1] == pytest.approx(row[2], abs=0.02) for row in rows)
    assert rows[0][3] < 0.15 < 0.85 < rows[3][3]


def test_boltzmann_machine_learns_bars_and_stripes(run):
    out = run("boltzmann.py")
    mass, share = (float(line.split()[-1]) for line in out.splitlines()[-2:])
    assert mass > 0.9
    assert share == pytest.approx(mass, abs=0.05)


def test_densities_agree_with_hmc(run):
    lines = run("densities.py").splitlines()
    assert len(lines) == 5
    for line in lines:
        exact, found, error = map(float, re.search(r"samples (\S+), HMC (\S+); .* mean (\S+) standard", line).groups())
        assert found == pytest.approx(exact, abs=0.2)
        assert error < 0.2


def test_rbm_learns_digits(run):
    independent, learned = (float(line.split()[-2]) for line in run("rbm.py").splitlines())
    assert learned > max(-19, independent + 5)
