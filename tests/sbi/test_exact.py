"""Sampling, densities and evidence with a known likelihood, against the closed form of a linear normal model."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal

D = 10


def true_posterior(x, trials=1):
    """Of the sum of the trials x, with variance 0.1 each and a prior of variance 0.1."""
    return MultivariateNormal(x / (1 + trials), 0.1 / (1 + trials) * torch.eye(D))


def check_samples(samples, distribution):
    """Mean and covariance within four standard errors of n independent samples, if a quarter of them counts."""
    n = len(samples) / 4
    std = distribution.variance.sqrt()
    assert ((samples.mean(0) - distribution.mean) / std).abs().max() < 4 / math.sqrt(n)
    covariance = torch.cov(((samples - distribution.mean) / std).T)
    assert (covariance - torch.eye(D)).abs().max() < 4 * math.sqrt(2 / n)


def test_samples_have_the_posterior_of_the_observation(exact, observation):
    check_samples(exact.sample(1000, observation), true_posterior(observation))


def test_many_observations_are_sampled_at_once(exact, observation):
    both = torch.stack([observation, -observation])
    samples = exact.sample(1000, both)
    assert samples.shape == (2, 1000, D)
    for one, x in zip(samples, both, strict=True):
        check_samples(one, true_posterior(x))


def test_trials_are_summed(exact, observation):
    trials = torch.stack([observation, observation + 0.1, observation - 0.2])
    samples = exact.sample(1000, trials[None])
    check_samples(samples[0], true_posterior(trials.sum(0), trials=3))


def test_the_density_is_the_posteriors(exact, observation):
    distribution = true_posterior(observation)
    theta = distribution.sample((50,))
    found = exact.log_prob(theta, observation)
    bracket = exact.log_z(observation)
    assert bracket.closed
    # one constant for all, within half of the bracket
    difference = found - distribution.log_prob(theta)
    assert difference.std() < 1e-3
    assert difference.mean().abs() < bracket.width / 2


def test_the_evidence_is_within_a_twentieth_of_a_nat(exact, observation):
    truth = MultivariateNormal(torch.zeros(D), 0.2 * torch.eye(D)).log_prob(observation).item()
    bracket = exact.log_z(observation)
    assert bracket.closed
    assert bracket.lower < truth < bracket.upper
    assert abs((bracket.forward.value + bracket.backward.value) / 2 - truth) < 0.05


def test_the_chains_estimate_the_evidence_too(exact, observation):
    truth = MultivariateNormal(torch.zeros(D), 0.2 * torch.eye(D)).log_prob(observation).item()
    chains = exact.chains(4000, observation)
    assert abs(chains.log_z.item() - truth) < 0.25
    assert chains.mixed().all()


def test_the_potential_has_the_gradient_of_the_density(exact, observation):
    distribution = true_posterior(observation)
    theta = distribution.sample((5,)).requires_grad_()
    (ours,) = torch.autograd.grad(exact.potential(theta, observation).sum(), theta)
    (truth,) = torch.autograd.grad(-distribution.log_prob(theta).sum(), theta)
    torch.testing.assert_close(ours, truth, atol=1e-3, rtol=1e-3)


def test_the_same_seed_gives_the_same_samples(exact, observation):
    assert torch.equal(exact.sample(20, observation, seed=3), exact.sample(20, observation, seed=3))
    assert not torch.equal(exact.sample(20, observation, seed=3), exact.sample(20, observation, seed=4))


def test_chains_that_disagree_are_reported(exact, observation, monkeypatch):
    """Without any moves, two of the four populations keep few ancestors each: their means differ."""
    monkeypatch.setattr("adance.sbi.sampling.OVERSAMPLING", 1)
    monkeypatch.setattr("adance.sbi.sampling.EFFECTIVE_SHARE", 0.02)
    monkeypatch.setattr("adance.sbi.sampling.STEP_SIZE", 1e-6)
    monkeypatch.setattr("adance.sbi.sampling.ADAPTATION", 0.0)
    with pytest.warns(UserWarning, match="have not mixed for 1 of 1 observations"):
        exact.sample(100, observation)
