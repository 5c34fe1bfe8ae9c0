"""Bad input of posteriors: one line, and nothing is changed."""

import warnings

import pytest
import torch

from adance.errors import InputError
from adance.sbi import Calibration, PosteriorEnergy, calibrate

GENERATOR = torch.Generator().manual_seed(0)
THETA = torch.rand(200, 2, generator=GENERATOR) * 2 - 1
X = THETA + 0.1 * torch.randn(200, 2, generator=GENERATOR)


@pytest.fixture(scope="module")
def fitted():
    prior = torch.distributions.Uniform(-torch.ones(2), torch.ones(2))
    return PosteriorEnergy(prior, hidden=(8,), max_steps=3).fit(THETA, X)


SPOILED = X.clone()
SPOILED[3, 1] = torch.nan


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda p: p.fit(THETA, X[:, :0]), "x must have shape"),
        (lambda p: p.fit(THETA, X[:-1]), "one row per simulation"),
        (lambda p: p.fit(THETA, SPOILED), "row 3 of x"),
        (lambda p: p.fit(THETA, X.to(torch.complex64)), "x must be real"),
        (lambda p: p.fit(None, X), "theta must be an array of numbers"),
        (lambda p: p.sample(4, None), "x_o must be an array of numbers"),
        (lambda p: p.sample(4, torch.zeros(0, 2)), "x_o must have shape"),
        (lambda p: p.sample(4, X[0], seed="a"), "seed must be a whole number"),
        (lambda p: p.potential(SPOILED, X[0]), "row 3 of theta"),
        (lambda p: p.potential(THETA[:0], X[0]), "theta must have shape"),
        (lambda p: p.log_prob(torch.zeros(5, 3), X[0]), "theta must have shape"),
        (lambda p: calibrate(p, SPOILED, X, samples=8), "row 3 of theta"),
        (lambda p: calibrate(p, torch.zeros(200, 3), X, samples=8), "theta must have shape"),
        (lambda p: calibrate(p, THETA, X, at_once=0), "at_once must be"),
        (lambda p: PosteriorEnergy(p.prior.distributions, hidden=8), "hidden must be a sequence"),
        (lambda p: PosteriorEnergy(p.prior.distributions, hidden=(8.5,)), "each width"),
    ],
)
def test_bad_input_is_refused_in_one_line_and_leaves_the_posterior_as_it_was(ask, says, fitted):
    before = fitted.sample(4, X[0], seed=1)
    with pytest.raises(InputError, match=says) as raised:
        ask(fitted)
    assert "\n" not in str(raised.value)
    assert torch.equal(fitted.sample(4, X[0], seed=1), before)


def test_arrays_and_tensors_with_gradients_are_taken(fitted):
    found = fitted.potential(THETA.numpy(), X[0].numpy())
    assert torch.equal(found, fitted.potential(THETA, X[0]))
    again = PosteriorEnergy(fitted.prior.distributions, hidden=(8,), max_steps=3)
    again.fit(THETA.clone().requires_grad_(), X.clone().requires_grad_())
    assert torch.equal(again.potential(THETA, X[0]), found)


def test_levels_and_parameters_that_do_not_exist_are_refused(fitted):
    check = Calibration(torch.rand(10, 2, generator=torch.Generator().manual_seed(0)), torch.linspace(0, 1, 10), 8)
    with pytest.raises(InputError, match="level must be in"):
        check.coverage(95)
    with pytest.raises(InputError, match="parameter must be in 0 to 1"):
        check.plot_ranks(9)


def test_data_far_from_the_simulations_are_warned_of(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.potential(THETA[:1], torch.zeros(2))
    with pytest.warns(UserWarning, match="column 1 is 9, and simulated values are"):
        fitted.potential(THETA[:1], torch.tensor([0.0, 9.0]))
