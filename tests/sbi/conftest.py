"""Posteriors of θ ~ N(0, 0.1·I) with data x = θ + N(0, 0.1·I): N(x/2, 0.05·I), evidence N(x; 0, 0.2·I)."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal

from adance.sbi import PosteriorEnergy
from adance.sbi.energy import PosteriorTilt
from adance.sbi.features import DataFeatures
from adance.sbi.simulations import PosteriorModel
from adance.training.in_memory import FitHistory

D = 10
PRIOR = MultivariateNormal(torch.zeros(D), 0.1 * torch.eye(D))


class ExactNet(torch.nn.Module):
    """``−log p(x|θ)``, with θ = √0.1 u, and x as it is."""

    def forward(self, u, x):
        squares = (x - math.sqrt(0.1) * u).square().sum(1) / 0.2
        return squares + D / 2 * math.log(2 * math.pi * 0.1)


@pytest.fixture
def exact():
    """The posterior with the true likelihood instead of a fitted network."""
    posterior = PosteriorEnergy(PRIOR)
    energy = PosteriorTilt(ExactNet(), torch.zeros(D, dtype=torch.bool))
    scores = torch.linspace(-2, 2, 16, dtype=torch.float64)
    features = DataFeatures(scores.expand(D, 16).contiguous(), scores)  # the identity between −2 and 2
    posterior.model = PosteriorModel(energy, features, FitHistory((0.0,), 0, 0))
    return posterior


@pytest.fixture
def observation():
    return 0.4 * torch.sin(torch.arange(float(D)))
