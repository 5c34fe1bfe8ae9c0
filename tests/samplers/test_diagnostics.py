import math
import sys

import pytest
import torch

from adance.errors import InputError
from adance.samplers import (
    MALA,
    RandomWalkMetropolis,
    effective_sample_size,
    run_chains,
    split_rhat,
    summary,
    to_arviz,
)


def quadratic(x):
    return 0.5 * x.flatten(1).square().sum(1)


@pytest.fixture
def az():
    return pytest.importorskip("arviz")


@pytest.fixture
def chains(generator):
    x = torch.randn(8, 2, 3, generator=generator, dtype=torch.float64)
    return run_chains(MALA(400, 0.8), quadratic, x, generator=generator, record=True)


def autoregressive(rho, steps, n, generator):
    """Chains of unit variance and autocorrelation ρ, from stationarity ``(steps, n, 1)``."""
    noise = torch.randn(steps, n, 1, generator=generator, dtype=torch.float64)
    x = [noise[0]]
    for step in noise[1:]:
        x.append(rho * x[-1] + math.sqrt(1 - rho**2) * step)
    return torch.stack(x)


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_effective_sample_size_of_known_chains(rho, az, generator):
    steps, n = 4000, 4
    right = steps * n * (1 - rho) / (1 + rho)
    found = effective_sample_size(autoregressive(rho, steps, n, generator))
    assert found.shape == (1,)
    assert found.item() == pytest.approx(right, rel=0.15)


def test_rhat_tells_chains_that_agree_from_those_that_do_not(az, generator):
    x = autoregressive(0.3, 1000, 4, generator)
    assert split_rhat(x).item() < 1.01
    assert split_rhat(x + torch.tensor([0.0, 0.0, 1.0, 1.0])[:, None]).item() > 1.1
    assert split_rhat(x + torch.linspace(0, 2, 1000)[:, None, None]).item() > 1.1


def test_chains_as_an_arviz_data_set(az, chains):
    data = to_arviz(chains, quadratic, thin=2)
    assert data.posterior["x"].shape == (8, 200, 2, 3)
    assert data.sample_stats["energy"].shape == (8, 200)
    assert (data.posterior["x"].values[3, 5] == chains.positions[10, 3].numpy()).all()
    assert data.sample_stats["energy"].values[3, 5] == pytest.approx(float(quadratic(chains.positions[10, 3:4])))


def test_summary_of_a_run(az, chains):
    found = summary(chains)
    assert set(found) == {
        "acceptance", "energy", "gradient_norm", "finite", "effective_sample_size", "split_rhat"
    }  # fmt: skip
    assert found["energy"] == pytest.approx(3, abs=0.5)
    assert found["gradient_norm"] == pytest.approx(math.sqrt(6), abs=0.3)
    assert found["finite"] == 1
    assert 200 < found["effective_sample_size"] < 3200


def test_summary_without_positions_needs_no_arviz(generator):
    found = summary(run_chains(RandomWalkMetropolis(50), quadratic, torch.zeros(4, 2), generator=generator))
    assert set(found) == {"acceptance", "energy", "gradient_norm", "finite"}
    assert math.isnan(found["gradient_norm"])


def test_absent_arviz_is_named(monkeypatch, chains):
    monkeypatch.setitem(sys.modules, "arviz", None)
    for ask in (effective_sample_size, split_rhat, to_arviz, summary):
        with pytest.raises(InputError, match=r"pip install adance\[diagnostics\]"):
            ask(chains)


def test_chains_that_were_not_recorded_are_refused(az, generator):
    with pytest.raises(InputError, match="record=True"):
        split_rhat(run_chains(MALA(5), quadratic, torch.zeros(2, 1), generator=generator))
    with pytest.raises(InputError, match="at least 4"):
        split_rhat(torch.zeros(3, 2, 1))
