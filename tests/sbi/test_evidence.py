"""The evidence of a mixture in a box, in closed form, and of a fit whose energy is normalized."""

import math

import pytest
import torch
from torch.distributions import Independent, Normal, Uniform

from adance.contrasts import Logistic
from adance.sbi import PosteriorEnergy
from adance.sbi.energy import PosteriorTilt
from adance.sbi.features import DataFeatures
from adance.sbi.simulations import PosteriorModel
from adance.training.in_memory import FitHistory

HALF = 10.0
SCALES = (1.0, 0.1)


class MixtureNet(torch.nn.Module):
    """Minus the log of ½N(x; θ, 1) + ½N(x; θ, 0.01); the features of θ have standard deviation 1, those of x are x."""

    def forward(self, theta, x):
        squares = (x - theta * HALF / math.sqrt(3)).square().sum(1)
        parts = [-squares / (2 * s * s) - 2 * math.log(s) - math.log(4 * math.pi) for s in SCALES]
        return -torch.stack(parts).logsumexp(0)


@pytest.mark.parametrize("x", [(0.0, 3.0), (9.9, -9.0)])
def test_the_evidence_of_a_mixture_in_a_box(x):
    """Each part is the mass of a normal distribution in the box, over the box's area of 400."""
    posterior = PosteriorEnergy(Independent(Uniform(torch.full((2,), -HALF), torch.full((2,), HALF)), 1))
    scores = torch.linspace(-HALF, HALF, 16, dtype=torch.float64)
    features = DataFeatures(scores.expand(2, 16).contiguous(), scores)  # the identity
    energy = PosteriorTilt(MixtureNet(), torch.ones(2, dtype=torch.bool))
    posterior.model = PosteriorModel(energy, features, FitHistory((0.0,), 0, 0))
    data = torch.tensor(x)
    inside = [
        (Normal(data, s).cdf(torch.tensor(HALF)) - Normal(data, s).cdf(torch.tensor(-HALF))).prod() for s in SCALES
    ]
    truth = math.log(sum(inside) / 2 / (2 * HALF) ** 2)
    bracket = posterior.log_z(data)
    assert bracket.closed
    # the way back begins at ends of chains, so its bound is not strict: the truth may be just outside
    assert bracket.lower - 0.05 < truth < bracket.upper + 0.05
    assert abs((bracket.forward.value + bracket.backward.value) / 2 - truth) < 0.05


def test_a_ratio_that_is_learned_from_shuffled_pairs_is_normalized(generator):
    """exp(−f) = p(x|θ)/p(x), whose mean over the prior is 1 at every x."""
    theta = torch.randn(8000, 1, generator=generator)
    x = theta + 0.5 * torch.randn(8000, 1, generator=generator)
    posterior = PosteriorEnergy(
        Normal(0.0, 1.0), noise="shuffled", contrast=Logistic(), hidden=(32, 32), max_steps=1000
    ).fit(theta, x)
    for at in (-1.0, 0.0, 1.0):
        bracket = posterior.log_z(torch.tensor([at]))
        assert abs((bracket.forward.value + bracket.backward.value) / 2) < 0.15
