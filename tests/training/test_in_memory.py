"""Fits in memory: they learn the density, keep the best weights, depend on the seed alone and write nothing."""

import math
from pathlib import Path

import pytest
import torch

from adance import MLP, NCE, DivergedError, Objective, Settings
from adance.energies import GaussianMixture
from adance.noises import FixedNoise
from adance.training.in_memory import FitHistory, Rows, fit_in_memory, loss_on

MIXTURE = GaussianMixture(torch.tensor([[-1.5], [1.5]]), 0.25 * torch.eye(1))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def fitted(settings: Settings, n: int = 4000, seed: int = 0) -> tuple[MLP, Objective, FitHistory]:
    torch.manual_seed(0)
    energy, draws = MLP((1,), (32, 32)), generator(seed)
    train, held_out = MIXTURE.sample(n, generator(1)), MIXTURE.sample(1000, generator(2))
    energy.fit_base(train)
    objective = NCE().build(energy, train, batch_size=settings.batch_size, generator=draws)
    objective.start(energy, train, draws)
    loss = loss_on(energy, objective, Rows(held_out), seed=3)
    history = fit_in_memory(energy, objective, Rows(train), loss, settings, draws)
    assert float(loss()) == history.losses[history.best] == min(history.losses)
    return energy, objective, history


def density_error(energy: MLP, log_z: torch.Tensor) -> float:
    """KL(truth ‖ model) by the trapezoidal rule."""
    x = torch.linspace(-6, 6, 2001)[:, None]
    truth = MIXTURE.log_prob(x)
    with torch.no_grad():
        return float(torch.trapezoid(truth.exp() * (truth + energy(x) + log_z), x[:, 0]))


def test_a_fit_learns_the_density() -> None:
    energy, objective, history = fitted(Settings(300, 256, 3e-3, (0.9, 0.999), "cosine", evaluate_every=50))
    assert history.steps == 300
    assert len(history.losses) == 7
    assert density_error(energy, objective.log_normalizer()) < 0.04  # a Gaussian's is 0.46


def test_a_fit_ends_when_nothing_improves_and_keeps_the_best_weights() -> None:
    few = Settings(2000, 20, 1e-2, (0.9, 0.999), "constant", evaluate_every=20, patience=5)
    _, _, history = fitted(few, n=20)
    assert history.steps == 20 * (history.best + 5) < 2000
    assert history.losses[history.best] < history.losses[-1]


def test_a_fit_depends_on_its_seed_alone() -> None:
    settings = Settings(20, 64, evaluate_every=10)
    one, two, other = (fitted(settings, seed=seed)[2].losses for seed in (0, 0, 1))
    assert one == two
    assert one != other


def test_noise_broadens_the_rows_that_are_drawn() -> None:
    rows = Rows(torch.zeros(20_000, 2), noise_std=torch.tensor([0.0, 2.0]))
    drawn = rows.draw(10_000, generator()).x
    assert float(drawn[:, 0].abs().max()) == 0
    assert float(drawn[:, 1].std()) == pytest.approx(2, abs=4 * 2 / math.sqrt(2 * 10_000))


def test_rows_keep_their_labels() -> None:
    rows = Rows(torch.arange(1000.0)[:, None], labels=torch.arange(1000))
    drawn = rows.draw(100, generator())
    assert torch.equal(drawn.x[:, 0].long(), drawn.labels)


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fitted(Settings(2, 64))
    assert list(tmp_path.iterdir()) == []


def test_a_row_outside_the_noise_is_an_error() -> None:
    energy = MLP((1,), (8,))
    objective = NCE(FixedNoise(torch.distributions.Uniform(torch.zeros(1), torch.ones(1)))).build(
        energy, torch.rand(8, 1)
    )
    loss = loss_on(energy, objective, Rows(torch.full((4, 1), 2.0)), seed=0)
    with pytest.raises(DivergedError, match="outside the noise's support"):
        fit_in_memory(energy, objective, Rows(torch.rand(8, 1)), loss, Settings(1, 8), generator())
