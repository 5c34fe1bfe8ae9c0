"""EnergyDensity learns known densities, is normalized, and samples them."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from adance.errors import InputError
from adance.sklearn import EnergyDensity
from adance.sklearn.normalization import bracket_mean
from adance.sklearn.waves import Waves

RNG = np.random.default_rng(0)
MEAN, COVARIANCE = np.array([10.0, -3.0]), np.array([[4.0, 1.2], [1.2, 0.5]])
TRUTH = multivariate_normal(MEAN, COVARIANCE)
ROWS = TRUTH.rvs(2000, random_state=0)


@pytest.fixture(scope="module")
def density() -> EnergyDensity:
    return EnergyDensity(noise="mixture", max_steps=300, random_state=0).fit(ROWS)


def test_log_densities_are_in_the_units_of_the_table(density: EnergyDensity) -> None:
    new = TRUTH.rvs(2000, random_state=1)
    gap = TRUTH.logpdf(new) - density.score_samples(new)
    assert abs(gap.mean()) < 0.05  # KL; a Gaussian of 5 fitted numbers has 5/(2·2000)
    scaled = EnergyDensity(noise="mixture", max_steps=300, random_state=0).fit(1000 * ROWS)
    np.testing.assert_allclose(
        scaled.score_samples(1000 * new), density.score_samples(new) - 2 * math.log(1000), atol=0.02
    )
    assert density.score(new) == pytest.approx(density.score_samples(new).mean())


def test_the_density_is_normalized(density: EnergyDensity) -> None:
    axes = [np.linspace(m - 8 * s, m + 8 * s, 200) for m, s in zip(MEAN, np.sqrt(np.diag(COVARIANCE)), strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    log_z = math.log(np.exp(density.score_samples(grid)).sum() * cell)
    assert abs(log_z) < 0.03
    bracket = density.log_z_bracket_
    assert bracket.closed
    assert bracket.lower < log_z < bracket.upper


def two_modes(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.choice([-2.0, 2.0], (n, 1)) + rng.normal(0, 0.3, (n, 1))


def test_a_narrow_valley_is_learned_beyond_the_base() -> None:
    density = EnergyDensity(noise="student", hidden=(64, 64), max_steps=1500, random_state=0).fit(two_modes(3000, 0))
    new = two_modes(2000, 2)
    truth = np.logaddexp(norm(-2, 0.3).logpdf(new), norm(2, 0.3).logpdf(new))[:, 0] - math.log(2)
    assert (truth - density.score_samples(new)).mean() < 0.1


def test_samples_have_the_moments_of_the_data(density: EnergyDensity) -> None:
    x = density.sample(1000, random_state=0)
    error = 5 * np.sqrt(np.diag(COVARIANCE) / 1000)
    assert (abs(x.mean(0) - MEAN) < error).all()
    assert np.cov(x.T) == pytest.approx(COVARIANCE, rel=5 * math.sqrt(2 / 1000))
    np.testing.assert_array_equal(x, density.sample(1000, random_state=0))


def test_warm_start_continues() -> None:
    density = EnergyDensity(warm_start=True, max_steps=20, random_state=0).fit(ROWS)
    first = density.model_
    again = density.fit(ROWS).model_
    assert again.units is first.units
    assert again.history.losses[0] < 1.01 * first.history.losses[first.history.best]


def test_warm_start_needs_the_same_columns() -> None:
    density = EnergyDensity(warm_start=True, max_steps=0, random_state=0).fit(ROWS[:50])
    with pytest.raises(InputError, match=f"a fit of {ROWS.shape[1]} columns, got rows of {ROWS.shape[1] + 1}"):
        density.fit(np.c_[ROWS[:50], ROWS[:50, :1]])


def test_an_unknown_noise_is_named() -> None:
    with pytest.raises(InputError, match=r"noise must be auto, stack, gaussian, .* or flow, got 'gauss'"):
        EnergyDensity(noise="gauss").fit(ROWS)


def test_a_row_that_is_too_far_is_named(density: EnergyDensity) -> None:
    with pytest.raises(InputError, match="row 1 of X is not finite after it is standardized"):
        density.score_samples([[0.0, 0.0], [1e300, 0.0]])


def test_the_bracket_of_a_mean_holds_and_closes() -> None:
    weights = torch.tensor(RNG.beta(2, 2, (200, 20_000)))
    found = [bracket_mean(row.log(), 0.0) for row in weights]
    assert all(bracket.closed and bracket.lower < math.log(0.5) < bracket.upper for bracket in found)
    assert max(bracket.width for bracket in found) < 0.04  # 2·√(2 ln 4000/20000)·0.22/0.5 is 0.025
    assert bracket_mean(torch.zeros(10), 5.0).lower == -math.inf


def test_the_stack_is_better_than_each_of_its_laws() -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random((600, 1)) < 0.7, rng.normal(0, 0.2, (600, 2)), rng.normal(2, 1, (600, 2)))
    stack, *others = [
        EnergyDensity(noise=noise, max_steps=1, random_state=0).fit(x[:400]).score(x[400:])
        for noise in ("stack", "gaussian", "student", "kde")
    ]
    assert stack > max(others)


def test_the_network_sees_waves_of_the_columns() -> None:
    x = torch.tensor([[0.0, math.pi / 6]])
    torch.testing.assert_close(Waves()(x), torch.tensor([[0.0, math.pi / 6, 0, 1, 1, 0]]), atol=1e-6, rtol=0)
