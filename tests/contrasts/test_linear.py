import math

import pytest
import torch
from torch import nn

from adance.contrasts.linear import Linear
from adance.energies import Gaussian
from adance.noises import FixedNoise
from adance.objectives import AdaNCE, Contrastive, MaximumLikelihood
from adance.samplers import MALA, Langevin


class Normal(nn.Module):
    """``½a(x − b)²``."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return 0.5 * self.a * (x[:, 0] - self.b).square()


def gradient(value, energy):
    return torch.stack(torch.autograd.grad(value, list(energy.parameters())))


@pytest.mark.parametrize("noises", [1, 3])
def test_value_is_the_difference_of_mean_log_ratios(noises, generator):
    data, noise = torch.randn(6, generator=generator), torch.randn(6, noises, generator=generator)
    torch.testing.assert_close(Linear()(data, noise), noise.mean() - data.mean())
    torch.testing.assert_close(Linear()(data + 7, noise + 7), Linear()(data, noise))
    assert Linear().ignores_constant
    assert Linear().curvature == 1


@pytest.mark.parametrize("recipe", [MaximumLikelihood(Langevin(3, 0.1)), MaximumLikelihood(MALA(3), start="data")])
def test_loss_is_the_mean_energy_of_data_less_that_of_noise(recipe, generator):
    energy, data = Normal(), torch.randn(40, 1, generator=generator)
    objective = recipe.build(energy, data, generator=generator)
    assert isinstance(objective.contrast, Linear)
    out = objective.loss(energy, data, generator)
    torch.testing.assert_close(out.energy_data, energy(data).detach())
    torch.testing.assert_close(out.value.detach(), out.energy_data.mean() - out.energy_noise.mean())


def test_gradient_is_the_likelihood_s_if_the_noise_is_the_model(generator):
    # −log p = ½a(x − b)² − ½ log a + const: its gradient is (½ mean(x − b)² − 1/(2a), −a mean(x − b))
    n, energy = 200_000, Normal()
    noise = FixedNoise(Gaussian(torch.tensor([0.5]), torch.tensor([1 / math.sqrt(2)])))
    data = torch.randn(n, 1, generator=generator) - 0.3
    apart = (data[:, 0] - 0.5).double()
    right = torch.stack([0.5 * apart.square().mean() - 0.25, -2 * apart.mean()]).float()
    found = gradient(Contrastive(Linear(), noise).loss(energy, data, generator).value, energy)
    # of n noise samples of N(b, 1/a): ½(x − b)² has the standard deviation 1/(a√2), a(x − b) has √a
    error = 5 * torch.tensor([1 / (2 * math.sqrt(2)), math.sqrt(2)]) / math.sqrt(n)
    assert ((found - right).abs() < error).all()


def test_gradient_is_adance_s_at_interval_one():
    data, found = torch.randn(40, 1, generator=torch.Generator().manual_seed(1)), []
    for kind in (MaximumLikelihood, lambda *args, **settings: AdaNCE(*args, interval=1, **settings)):
        energy, generator = Normal(), torch.Generator().manual_seed(2)
        objective = kind(Langevin(3, 0.1), start="rejuvenated", buffer=100).build(energy, data, generator=generator)
        found.append(gradient(objective.loss(energy, data, generator).value, energy))
    torch.testing.assert_close(*found)
