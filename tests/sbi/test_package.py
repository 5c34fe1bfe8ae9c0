import sys

import pytest
import torch
from torch.distributions import MultivariateNormal, Normal

from adance.errors import InputError
from adance.sbi import PosteriorEnergy, Prior, to_sbi
from adance.sbi.package import Potential

D = 10


def test_the_potential_is_the_log_density_up_to_a_constant(exact, observation):
    distribution = MultivariateNormal(observation / 2, 0.05 * torch.eye(D))
    theta = distribution.sample((20,))
    difference = Potential(exact)(theta, observation) - distribution.log_prob(theta)
    assert difference.std() < 1e-3


@pytest.mark.parametrize("method", ["slice_np_vectorized", "hmc_pyro"])
def test_the_package_samples_our_posterior(exact, observation, method):
    pytest.importorskip("sbi.inference")
    if method == "hmc_pyro":
        pytest.importorskip("pyro")
    options = (
        {"num_chains": 100, "warmup_steps": 30, "thin": 1} if method == "slice_np_vectorized" else {"num_chains": 1}
    )
    posterior = to_sbi(exact, observation, method=method, **options)
    torch.manual_seed(0)
    samples = posterior.sample((1000,), show_progress_bars=False)
    # as if a tenth of the samples were independent
    assert ((samples.mean(0) - observation / 2) / 0.05**0.5).abs().max() < 4 / 10
    assert (samples.std(0) / 0.05**0.5 - 1).abs().max() < 4 / 200**0.5


def test_priors_of_the_package_are_accepted():
    utils = pytest.importorskip("sbi.utils")
    assert Prior(utils.BoxUniform(-torch.ones(2), torch.ones(2))).size == 2
    both = utils.MultipleIndependent([Normal(torch.zeros(1), 1.0), utils.BoxUniform(torch.zeros(2), torch.ones(2))])
    theta = both.sample((5,))
    torch.testing.assert_close(Prior(both).log_prob(theta), both.log_prob(theta))


def test_a_sequence_of_laws_becomes_a_prior_of_the_package(line_of_two):
    pytest.importorskip("sbi.inference")
    options = {"num_chains": 4, "warmup_steps": 2, "thin": 1, "init_strategy": "proposal"}
    posterior = to_sbi(line_of_two, torch.zeros(2), **options)
    assert posterior.sample((4,), show_progress_bars=False).shape == (4, 2)


@pytest.fixture
def line_of_two(generator):
    posterior = PosteriorEnergy([Normal(0.0, 1.0), Normal(0.0, 1.0)], hidden=(4,), max_steps=1)
    theta = torch.randn(40, 2, generator=generator)
    return posterior.fit(theta, theta)


def test_without_the_package_the_error_says_how_to_install_it(exact, observation, monkeypatch):
    monkeypatch.setitem(sys.modules, "sbi.inference.posteriors", None)
    with pytest.raises(InputError, match=r"pip install 'adance\[sbi\]'"):
        to_sbi(exact, observation)
