"""Table 3.1 of the thesis, measured row by row: which methods self-normalize, train an adversary, and scale."""

import math

import pytest
import torch
from torch import nn

from adance.energies import Gaussian
from adance.noises import Flow, NeuralSampler, Perturbation
from adance.objectives import ACE, BRM, FCE, NCE, AdaBRM, AdaNCE, ConditionalNCE, RankingNCE
from adance.samplers import MALA

#                 how it is made, self-normalizing, adversarial
TABLE = {
    "CNCE": (lambda: ConditionalNCE(noises=1), False, False),
    "ACE": (lambda: ACE(hidden=(8,), learn_log_z=False), True, True),
    "FCE": (lambda: FCE(kind="affine", hidden=(8,), fit_steps=200, learn_log_z=False), True, True),
    "AdaNCE": (lambda: AdaNCE(MALA(5), interval=10, margin=0.0), False, False),
    "NCE": (lambda: NCE(learn_log_z=False), True, False),
    "BRM": (lambda: BRM(learn_log_z=False), True, False),
    "ranking": (lambda: RankingNCE(noises=1), False, False),
    "AdaBRM": (lambda: AdaBRM("hellinger", sampler=MALA(5), interval=10), False, False),
}


class Normal(nn.Module):
    """½‖x‖² + c in two dimensions, which is normalized at c = log 2π alone."""

    def __init__(self, off):
        super().__init__()
        self.c = nn.Parameter(torch.tensor(math.log(2 * math.pi) + off))

    def forward(self, x):
        return 0.5 * x.square().sum(1) + self.c


@pytest.mark.parametrize(("make", "normalizes", "adversary"), TABLE.values(), ids=TABLE.keys())
def test_self_normalizing_and_adversarial(make, normalizes, adversary):
    slopes = []
    for off in (-1.0, 0.0, 1.0):
        x = torch.randn(5000, 2, generator=torch.Generator().manual_seed(1))
        energy = Normal(off)
        objective = make().build(energy, x, generator=torch.Generator().manual_seed(2))
        value = objective.loss(energy, x, torch.Generator().manual_seed(3)).value
        slopes.append(torch.autograd.grad(value, energy.c)[0].item())
    if normalizes:
        # The constant is drawn to log Z, and rests there.
        assert slopes[0] < -0.2
        assert slopes[2] > 0.2
        assert abs(slopes[1]) < 0.1
    else:
        assert max(map(abs, slopes)) < 1e-6
    assert objective.self_normalizing == normalizes
    assert (objective.log_normalizer() is not None) == normalizes
    assert bool(objective.adversary_parameters()) == adversary


DIMENSIONS = (2, 8, 32)


def normal_data(dimension, n=2000):
    return torch.randn(n, dimension, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_conditional_noise_of_one_bandwidth_does_not_scale():
    # The share of a pair that still pulls, σ(−G), vanishes as the noise leaves the data; and so it does for small D
    # where the bandwidth is small: then r = 0 and the two sides cancel.
    weights = []
    for dimension in DIMENSIONS:
        x = normal_data(dimension)
        y = Perturbation(1.0).build(x).sample(len(x), x, torch.Generator().manual_seed(2)).x
        gap = 0.5 * (y.square() - x.square()).sum(1)
        weights.append(torch.sigmoid(-gap).mean().item())
    assert weights[0] > 0.2
    assert weights[0] > weights[1] > weights[2]
    assert weights[2] < 0.02
    # The default bandwidth keeps the share, at the price of ever shorter steps.
    x = normal_data(DIMENSIONS[-1])
    y = Perturbation().build(x).sample(len(x), x, torch.Generator().manual_seed(2)).x
    assert torch.sigmoid(-0.5 * (y.square() - x.square()).sum(1)).mean() > 0.2


@torch.no_grad()
def test_the_density_of_a_neural_sampler_does_not_scale():
    shortfalls = []
    for dimension in DIMENSIONS:
        x = normal_data(dimension, 200)
        recipe = NeuralSampler(hidden=(), base_weight=0.0, marginal_draws=256, min_std=0.3, latent=dimension)
        noise = recipe.build(x, torch.Generator().manual_seed(2))
        # The sampler that has the data's law: x = m + s(√(1 − 0.3²) z + 0.3 ξ)
        (layer,) = noise.net
        layer.weight.zero_()
        layer.weight[:dimension] = math.sqrt(1 - 0.3**2) * torch.eye(dimension, dtype=torch.float64)
        layer.bias[:dimension], layer.bias[dimension:] = 0.0, -40.0
        right = Gaussian.fitted(x).log_prob(x)
        shortfalls.append((right + noise.energy(x)).mean().item())
    assert -0.1 < shortfalls[0] < 0.5
    assert shortfalls[1] > 2
    assert shortfalls[2] > 20


@torch.no_grad()
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_densities_of_a_flow_and_of_a_snapshot_scale(dimension):
    # Both are known exactly, in any dimension: a flow's draws are mapped back to where they came from, and a
    # fresh snapshot has ratio one.
    x = normal_data(dimension, 200)
    flow = Flow(fit_steps=0, hidden=(16,)).build(x, torch.Generator().manual_seed(2))
    density = flow.density
    for weight in density.parameters():  # away from the identity, where a flow starts
        weight.add_(0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(6), dtype=weight.dtype))
    y = flow.sample(200, x, torch.Generator().manual_seed(3)).x
    z = torch.randn(200, dimension, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    back, log_slope = density.flow().call_and_ladj(density.standard(y))
    assert log_slope.abs().max() > 0
    torch.testing.assert_close(back, z, rtol=1e-6, atol=1e-6)
    right = Gaussian(torch.zeros(dimension, dtype=torch.float64), torch.ones(dimension, dtype=torch.float64))
    found = -flow.energy(y)
    torch.testing.assert_close(
        found, right.log_prob(z) + log_slope - density.standard.log_volume(), rtol=1e-6, atol=1e-6
    )
    energy = nn.Sequential(nn.Linear(dimension, 1), nn.Flatten(0)).double()
    recipe = AdaNCE(MALA(2), interval=10, margin=0.0, buffer=256)
    objective = recipe.build(energy, x, batch_size=200, generator=torch.Generator().manual_seed(4))
    out = objective.loss(energy, x, torch.Generator().manual_seed(5))
    assert out.metrics["ratio_data"] == out.metrics["ratio_std"] == 0
