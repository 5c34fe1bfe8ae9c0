"""Fits: a box that the posterior must not leave, normal posteriors in closed form, rounds, and what is refused."""

import math

import pytest
import torch
from torch.distributions import Independent, Normal, Uniform

from adance.contrasts import Logistic, Ranking
from adance.errors import InputError
from adance.sbi import PosteriorEnergy

BOX = Independent(Uniform(torch.zeros(1), torch.ones(1)), 1)


@pytest.fixture(scope="module")
def line():
    """θ ~ N(0, 1), x = θ + N(0, ½): posteriors N(x·4/5, 1/5)."""
    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(2000, 1, generator=generator)
    return theta, theta + 0.5 * torch.randn(2000, 1, generator=generator)


@pytest.fixture(scope="module")
def fitted(line):
    return PosteriorEnergy(Normal(0.0, 1.0), hidden=(32, 32), max_steps=600).fit(*line)


def check_line(posterior, x):
    """Within a quarter of the posterior's standard deviation, and its spread within a fifth."""
    samples = posterior.sample(1000, torch.tensor([x]))
    assert abs(samples.mean().item() - 0.8 * x) < 0.25 * math.sqrt(0.2)
    assert abs(samples.std().item() / math.sqrt(0.2) - 1) < 0.2


@pytest.mark.parametrize("x", [-1.0, 0.3, 1.5])
def test_a_fit_finds_normal_posteriors(fitted, x):
    check_line(fitted, x)


def test_the_fitted_density_integrates_to_1(fitted):
    x, theta = torch.tensor([0.5]), torch.linspace(-6, 6, 2001)[:, None]
    total = fitted.log_prob(theta, x).exp().sum() * 12 / 2000
    assert abs(total.log().item()) < fitted.log_z(x).width / 2 + 1e-3


@pytest.mark.parametrize(
    "arguments", [{"noise": "snapshot"}, {"noise": "shuffled"}, {"noise": "shuffled", "contrast": Logistic()}]
)
def test_other_noises_and_contrasts_find_them_too(line, arguments):
    posterior = PosteriorEnergy(Normal(0.0, 1.0), hidden=(32, 32), max_steps=600, **arguments).fit(*line)
    check_line(posterior, 0.5)


def test_nothing_lies_outside_a_box_and_its_wall_is_reached(generator):
    """x = θ + N(0, 0.3) at x = 1: the density is highest at the wall θ = 1; the mean is 1 − 0.3·√(2/π) but for 0."""
    theta = torch.rand(2000, 1, generator=generator)
    x = theta + 0.3 * torch.randn(2000, 1, generator=generator)
    posterior = PosteriorEnergy(BOX, hidden=(32, 32), max_steps=600).fit(theta, x)
    samples = posterior.sample(2000, torch.tensor([1.0]))
    assert BOX.log_prob(samples).isfinite().all()
    assert abs(samples.mean().item() - (1 - 0.3 * math.sqrt(2 / math.pi))) < 0.05
    assert (samples > 0.97).float().mean() > 0.05
    outside = torch.tensor([[-0.1], [1.1]])
    assert (posterior.log_prob(outside, torch.tensor([1.0])) == -math.inf).all()


def test_a_second_round_keeps_the_prior(line, fitted):
    """More simulations, all around 1, do not move the posterior there: the prior stays N(0, 1)."""
    generator = torch.Generator().manual_seed(1)
    posterior = PosteriorEnergy(Normal(0.0, 1.0), hidden=(32, 32), max_steps=600).fit(*line)
    theta = 1 + 0.5 * torch.randn(1000, 1, generator=generator)
    posterior.append_simulations(theta, theta + 0.5 * torch.randn(1000, 1, generator=generator))
    check_line(posterior, 0.5)
    check_line(posterior, 1.2)


def test_a_fit_is_repeated_by_its_seed(line):
    first, second = (PosteriorEnergy(Normal(0.0, 1.0), hidden=(8,), max_steps=20).fit(*line) for _ in range(2))
    x = torch.tensor([0.5])
    assert torch.equal(first.potential(line[0], x), second.potential(line[0], x))


def test_a_fit_leaves_the_global_generator_alone(line):
    state = torch.get_rng_state()
    PosteriorEnergy(Normal(0.0, 1.0), hidden=(8,), max_steps=20).fit(*line).sample(10, torch.tensor([0.5]))
    assert torch.equal(state, torch.get_rng_state())


def test_shapes_of_observations(fitted):
    assert fitted.sample(7, torch.zeros(1)).shape == (7, 1)
    assert fitted.sample(7, torch.zeros(3, 1)).shape == (3, 7, 1)
    assert fitted.sample(7, torch.zeros(2, 5, 1)).shape == (2, 7, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, t, x: p.fit(t, x[:-1]), "one row per simulation"),
        (lambda p, t, x: p.fit(t[:5], x[:5]), "at least 20 simulations, got 5"),
        (lambda p, t, x: p.fit(t.expand(-1, 2), x), r"theta must have shape \(N, 1\)"),
        (lambda p, t, x: p.fit(t, x / 0), "row 0 of x is not finite"),
        (lambda p, t, x: p.fit(t, x).append_simulations(t, x.expand(-1, 2)), "x must have 1 columns, as before, got 2"),
        (lambda p, t, x: p.sample(5, x[0]), "not fitted yet"),
        (lambda p, t, x: p.fit(t, x).sample(0, x[0]), "n must be a whole number of at least 1"),
        (lambda p, t, x: p.fit(t, x).sample(5, torch.zeros(2)), r"x must have shape \(N, 1\), got \(1, 2\)"),
        (lambda p, t, x: p.fit(t, x).log_prob(t, x[:2]), "this needs one observation"),
    ],
)
def test_bad_input_is_an_error(line, call, message):
    with pytest.raises(InputError, match=message):
        call(PosteriorEnergy(Normal(0.0, 1.0), hidden=(4,), max_steps=1), *line)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": "gaussian"}, "noise must be perturbed, shuffled or snapshot"),
        ({"max_steps": 0}, "max_steps must be a whole number"),
        ({"contrast": Ranking(3), "hidden": ()}, "hidden must be widths"),
    ],
)
def test_bad_settings_are_errors(line, arguments, message):
    with pytest.raises(InputError, match=message):
        PosteriorEnergy(Normal(0.0, 1.0), **arguments).fit(*line)
