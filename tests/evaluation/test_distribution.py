"""A run as a distribution of torch, compared with a normal law in closed form."""

import logging
import math

import pytest
import torch
from torch import nn
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from adance import as_distribution
from adance.data import Identity
from adance.errors import InputError
from adance.samplers import MALA, Langevin
from adance.training import Run
from adance.training.run_folder import RunFolder

OFFSET = 4.0  # of the energy, which log Z takes out


class Quadratic(nn.Module):
    """``½ (x − μ)ᵀ P (x − μ) + 4``."""

    def __init__(self, mean, precision):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("precision", precision)

    def forward(self, x):
        centered = x - self.mean
        return 0.5 * ((centered @ self.precision) * centered).sum(1) + OFFSET


@pytest.fixture(scope="module")
def exact():
    mean = torch.tensor([1.0, -2.0, 0.5])
    factor = torch.tensor([[1.5, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.4, 0.3, 1.1]])
    return MultivariateNormal(mean, scale_tril=factor)


def run_of(energy, event_shape, kernel, **data):
    about = {"kind": "vector", "event_shape": list(event_shape), "transform": Identity().state(), **data}
    return Run(RunFolder("a-run"), energy, kernel, about, step=0, averaged=False, log_normalizer=0.0)


@pytest.fixture(scope="module")
def run(exact):
    energy = Quadratic(exact.mean, exact.precision_matrix)
    std = exact.variance.sqrt() * 1.3  # the base is near the model, and has neither its correlations nor its deviations
    return run_of(energy, (3,), MALA(steps=10), mean=(exact.mean + 0.2).tolist(), std=std.tolist())


@pytest.fixture(scope="module")
def found(run):
    return as_distribution(run, chains=400, seed=3)


def test_log_z_is_that_of_the_closed_form_within_its_error(found, exact):
    log_z = 1.5 * math.log(2 * math.pi) + float(exact.scale_tril.diagonal().log().sum()) - OFFSET
    assert 0 < found.log_z.error < 0.1
    assert found.log_z.value == pytest.approx(log_z, abs=4 * found.log_z.error)
    assert found.log_z.effective > 100


def test_log_prob_is_the_exact_one_but_for_a_constant(found, exact):
    x = exact.sample((5, 7))
    assert found.log_prob(x).shape == (5, 7)
    difference = found.log_prob(x) - exact.log_prob(x)
    assert difference.std() < 1e-5
    assert difference.abs().max() < 4 * found.log_z.error + 1e-5
    assert found.log_prob(x[0, 0]).shape == ()
    x.requires_grad_()
    torch.testing.assert_close(*(torch.autograd.grad(p.log_prob(x).sum(), x)[0] for p in (found, exact)))


def test_shapes_are_those_of_torch(found):
    assert found.event_shape == (3,)
    assert found.batch_shape == ()
    assert found.sample().shape == (3,)
    assert found.sample((2, 4)).shape == (2, 4, 3)
    assert found.sample_n(5).shape == (5, 3)
    assert not found.has_rsample
    assert not torch.equal(found.sample((2,)), found.sample((2,)))
    with pytest.raises(ValueError, match=r"must end with the event's shape \(3,\), got \(2, 4\)"):
        found.log_prob(torch.zeros(2, 4))


def test_samples_are_those_of_the_law(found, exact):
    n = 4000
    x = found.sample((n,))
    error = exact.variance.sqrt() / math.sqrt(n)
    assert ((x.mean(0) - exact.mean).abs() < 5 * error).all()
    torch.testing.assert_close(x.T.cov(), exact.covariance_matrix, atol=5 * 2.4 * math.sqrt(2 / n), rtol=0)


def test_randomness_is_its_own(run):
    before = torch.get_rng_state()
    samples = [as_distribution(run, chains=20, seed=seed).sample((3,)) for seed in (1, 1, 2)]
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(samples[0], samples[1])
    assert not torch.equal(samples[0], samples[2])


def test_in_a_box_the_density_ends_at_its_walls():
    """A normal law of deviation 1, cut off at ±1."""
    energy = Quadratic(torch.zeros(2), torch.eye(2))
    kernel = Langevin(steps=10, step_size=0.02, noise_std=0.2, bounds=(-1, 1))  # at T = 1
    run = run_of(energy, (2,), kernel, mean=[0.0, 0.0], std=[1.0, 1.0])
    found = as_distribution(run, chains=400, validate_args=False)
    normal = Independent(Normal(torch.zeros(2), 1), 1)
    log_mass = 2 * math.log(math.erf(1 / math.sqrt(2)))
    assert found.log_z.value == pytest.approx(math.log(2 * math.pi) + log_mass - OFFSET, abs=4 * found.log_z.error)
    x = torch.tensor([[0.5, -0.9], [0.0, 1.1]])
    assert float(found.log_prob(x)[0]) == pytest.approx(float(normal.log_prob(x[0])) - log_mass, abs=0.05)
    assert found.log_prob(x)[1] == -math.inf
    assert found.sample((500,)).abs().max() <= 1
    with pytest.raises(ValueError, match="within the support"):
        as_distribution(run, chains=20, validate_args=True).log_prob(x)


def test_runs_without_a_density_are_refused(run):
    short = run_of(run.energy, (3,), Langevin(steps=5, step_size=1.0, noise_std=0.005), mean=[0.0] * 3, std=[1.0] * 3)
    with pytest.raises(InputError, match="a-run has no density: its chains are short-run, at temperature"):
        as_distribution(short)
    with pytest.raises(InputError, match="chains must be a whole number of at least 2, got 1"):
        as_distribution(run, chains=1)


def test_an_estimate_that_cannot_be_trusted_is_warned_about(run, caplog):
    with caplog.at_level(logging.WARNING, "adance"):
        as_distribution(run, chains=20, max_temperatures=2)
    assert "log Z cannot be trusted: 2 temperatures did not reach the model" in caplog.text


def test_it_serves_where_torch_wants_a_distribution(found, exact):
    """The KL divergence by Monte Carlo, between two distributions of torch."""
    wide = MultivariateNormal(exact.mean, exact.covariance_matrix * 2)
    x = found.sample((4000,))
    ratio = found.log_prob(x) - wide.log_prob(x)
    tolerance = 5 * float(ratio.std()) / math.sqrt(len(x)) + 4 * found.log_z.error
    assert float(ratio.mean()) == pytest.approx(float(kl_divergence(exact, wide)), abs=tolerance)


def test_values_of_any_type_and_number(found):
    x = torch.tensor([[1.0, -2.0, 0.5], [0.0, 1.0, 2.0]])
    torch.testing.assert_close(found.log_prob(x.double()), found.log_prob(x), rtol=0, atol=0)
    for shape in ((0,), (2, 0)):
        assert found.log_prob(found.sample(shape)).shape == shape
