import math

import pytest
import torch
from torch.distributions import (
    Beta,
    Cauchy,
    Exponential,
    HalfCauchy,
    HalfNormal,
    Independent,
    Laplace,
    LogisticNormal,
    LogNormal,
    MultivariateNormal,
    Normal,
    TransformedDistribution,
    Uniform,
    Weibull,
)
from torch.distributions.transforms import AffineTransform

from adance.errors import InputError
from adance.sbi import Prior

BOX = Independent(Uniform(torch.tensor([-1.0, 2.0]), torch.tensor([1.0, 5.0])), 1)
LAWS = {
    "box": BOX,
    "numbers": Normal(torch.tensor([1.0, -2.0]), torch.tensor([0.5, 3.0])),
    "normal": MultivariateNormal(torch.tensor([1.0, -1.0]), torch.tensor([[2.0, 0.9], [0.9, 1.0]])),
    "log-normal": Independent(LogNormal(torch.tensor([0.0, -3.0]), torch.tensor([0.5, 0.2])), 1),
    "shifted": TransformedDistribution(BOX, [AffineTransform(3.0, -2.0)]),
    "half-normal": Independent(HalfNormal(torch.tensor([0.5, 2.0])), 1),
    "exponential": Independent(Exponential(torch.tensor([0.5, 2.0])), 1),
    "parts": [Uniform(0.0, 1.0), LogNormal(0.0, 1.0)],
}


@pytest.mark.parametrize("distribution", LAWS.values(), ids=LAWS)
def test_the_density_is_that_of_the_map_from_normal_numbers(distribution, generator):
    """p(θ) = N(u)/|dθ/du|, by automatic differentiation of the map."""
    prior = Prior(distribution)
    u = torch.randn(20, 2, generator=generator, dtype=torch.float64)
    theta = prior.to_theta(u)
    jacobian = torch.stack([torch.autograd.functional.jacobian(lambda v: prior.to_theta(v[None])[0], row) for row in u])
    expected = Normal(0.0, 1.0).log_prob(u).sum(1) - jacobian.det().abs().log()
    torch.testing.assert_close(prior.log_prob(theta).double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("distribution", LAWS.values(), ids=LAWS)
def test_the_map_is_one_to_one(distribution, generator):
    prior = Prior(distribution)
    u = torch.randn(50, 2, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(prior.to_normal(prior.to_theta(u)), u, rtol=0, atol=1e-5)


def test_nothing_is_outside_a_box_even_in_float32():
    prior = Prior(BOX)
    u = torch.tensor([[-40.0, 40.0], [-7.0, 7.0], [6.0, -6.0]])
    theta = prior.to_theta(u)
    assert prior.log_prob(theta).isfinite().all()
    assert BOX.log_prob(theta).isfinite().all()


def test_walls_are_at_a_finite_place():
    u = Prior(BOX).to_normal(torch.tensor([[-1.0, 5.0]]))
    assert u.abs().max() <= 8


@pytest.mark.parametrize("name", ["box", "log-normal", "exponential", "parts"])
def test_the_density_is_0_outside_the_support(name):
    assert Prior(LAWS[name]).log_prob(torch.tensor([[-2.0, -2.0]])).item() == -math.inf


def test_a_row_outside_is_named():
    with pytest.raises(InputError, match=r"row 1 of theta is outside the prior's support"):
        Prior(BOX).to_normal(torch.tensor([[0.0, 3.0], [0.0, 6.0]]))


@pytest.mark.parametrize(
    ("distribution", "message"),
    [
        (Independent(Beta(torch.ones(2), torch.ones(2)), 1), "Beta has no quantile function"),
        ("uniform", "must be a torch.distributions distribution"),
        ([], "must be a torch.distributions distribution"),
        (Normal(torch.zeros(2, 2), 1.0), "must be a distribution of one vector"),
    ],
)
def test_a_prior_that_is_not_known_is_an_error(distribution, message):
    with pytest.raises(InputError, match=message):
        Prior(distribution)


def test_theta_of_another_width_is_an_error():
    with pytest.raises(InputError, match=r"theta must have shape \(N, 2\)"):
        Prior(BOX).log_prob(torch.zeros(3, 1))


@pytest.mark.parametrize(
    "distribution",
    [HalfNormal(2.0), Exponential(3.0), Laplace(0.0, 1.0), HalfCauchy(1.0), Cauchy(0.0, 1.0), Weibull(1.0, 2.0)],
    ids=lambda distribution: type(distribution).__name__,
)
def test_quantiles_far_out_are_finite_and_rise(distribution):
    prior, u = Prior(distribution), torch.tensor([[-8.0], [-6.0], [0.0], [5.0], [6.0], [7.0], [8.0]])
    theta = prior.to_theta(u)
    assert theta.isfinite().all()
    assert (theta.diff(dim=0) > 0).all()
    assert prior.log_prob(theta).isfinite().all()


def test_values_that_an_inner_transform_cannot_give_are_outside():
    """Weibull is a power: the square of a negative number is not its inverse."""
    prior = Prior(Weibull(1.0, 2.0))
    assert prior.log_prob(torch.tensor([[-1.0]])).tolist() == [-math.inf]
    with pytest.raises(InputError, match="outside the prior's support"):
        prior.to_normal(torch.tensor([[-1.0]]))


def test_a_transform_to_another_number_of_coordinates_is_refused():
    with pytest.raises(InputError, match="the prior LogisticNormal has no quantile function"):
        Prior(LogisticNormal(torch.zeros(1), torch.ones(1)))
