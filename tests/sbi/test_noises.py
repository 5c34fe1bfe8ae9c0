import math

import pytest
import torch

from adance.contrasts import Conditional, Logistic, Ranking
from adance.errors import InputError
from adance.objectives import Contrastive
from adance.sbi import PosteriorSnapshot, PriorPerturbation, ShuffledNoise
from adance.sbi.energy import PosteriorTilt


class Linear(torch.nn.Module):
    """f(θ, x) = θ·x."""

    def forward(self, theta, x):
        return (theta * x).sum(1)


class Scaled(Linear):
    """f(θ, x) = a θ·x."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, theta, x):
        return self.scale * super().forward(theta, x)


@pytest.mark.parametrize("smallest", [0.1, 1.0])
def test_a_perturbation_keeps_the_prior(smallest, generator):
    """u and y are both standard normal, so their mean is within 4/√N of 0, and their variance within 6/√N of 1."""
    n = 20_000
    u = torch.randn(n, 2, generator=generator)
    y = PriorPerturbation(smallest).sample(n, u, generator).x
    assert y.mean(0).abs().max() < 4 / n**0.5
    assert (y.var(0) - 1).abs().max() < 6 / n**0.5


def test_the_datum_and_its_noise_are_exchangeable(generator):
    """If the datum has the prior's distribution, no statistic tells which of the three it is.

    Here the statistic is which one is in the middle."""
    n = 30_000
    u = torch.randn(n, 1, generator=generator)
    y = PriorPerturbation(0.3, from_prior=0.0).sample(2 * n, u, generator).x.view(n, 2)
    middle = torch.cat([u, y], 1).argsort(1)[:, 1]
    share = (middle == 0).float().mean()
    assert abs(share - 1 / 3) < 4 * (2 / 9 / n) ** 0.5


def test_ranking_finds_the_posterior_with_either_noise(generator):
    """Data x = 2 with f = −θx: the posterior is N(x, 1), whose loss is the lowest among slopes of f."""
    n = 4000
    x = torch.full((n, 1), 2.0)
    u = x + torch.randn(n, 1, generator=generator)
    slopes = torch.tensor([0.5, 1.0, 1.5])
    for noise in (PriorPerturbation(0.1), ShuffledNoise(torch.randn(n, 1, generator=generator))):
        energy = PosteriorTilt(Linear(), torch.zeros(1, dtype=torch.bool))
        objective = Contrastive(Ranking(9), noise)
        losses = []
        for slope in slopes:
            again = torch.Generator().manual_seed(1)
            losses.append(objective.loss(energy, u, again, -slope * x).value.item())
        assert min(losses) == losses[1]


def test_noise_is_compared_with_the_datum_at_its_own_condition(generator):
    """The loss is that of each datum by itself, so a condition that changes a row changes that row's loss alone."""
    noise = PriorPerturbation(0.5)
    energy = PosteriorTilt(Linear(), torch.zeros(2, dtype=torch.bool))
    u, x = torch.randn(5, 2, generator=generator), torch.randn(5, 2, generator=generator)
    together = Contrastive(Ranking(3), noise, normalize=False).loss(energy, u, torch.Generator().manual_seed(3), x)
    y = noise.sample(15, u, torch.Generator().manual_seed(3)).x.view(5, 3, 2)
    r = -(torch.cat([u[:, None], y], 1) * x[:, None]).sum(2)
    expected = (r.logsumexp(1) - r[:, 0]).mean()
    torch.testing.assert_close(together.value, expected)


def test_a_contrast_that_needs_the_constant_is_refused():
    with pytest.raises(InputError, match="Logistic with perturbed parameters"):
        Contrastive(Logistic(), PriorPerturbation())
    Contrastive(Conditional(), PriorPerturbation())


@pytest.mark.parametrize("arguments", [{"smallest": 0.0}, {"smallest": 2.0}, {"from_prior": 1.5}])
def test_settings_out_of_range_are_errors(arguments):
    with pytest.raises(InputError, match="must be"):
        PriorPerturbation(**arguments)


def test_a_snapshots_noise_follows_its_posterior(generator):
    """With s = 1 the candidates are prior samples, of which N(1, ½) is drawn: f = ½(u − 2)² on a N(0, 1) prior."""

    class Square(torch.nn.Module):
        def forward(self, theta, x):
            return 0.5 * (theta - x).square().sum(1)

    n = 4000
    energy = PosteriorTilt(Square(), torch.zeros(1, dtype=torch.bool))
    noise = PosteriorSnapshot(energy, candidates=200, perturbation=PriorPerturbation(1.0))
    x = torch.full((n, 1), 2.0)
    u = 1 + 0.5**0.5 * torch.randn(n, 1, generator=generator)
    y = noise.sample(n, u, generator, x).x
    # 200 candidates have an effective number of about 100, whose bias is a hundredth of a standard deviation
    assert abs(y.mean() - 1) < 0.7 * (4 / n**0.5 + 0.01)
    assert abs(y.var() - 0.5) < 0.5 * (4 * (2 / n) ** 0.5 + 0.02)


def test_a_snapshot_that_is_the_model_leaves_nothing_to_learn(generator):
    """r is 0 for all, so the loss is log(M + 1), until the model moves; a refresh follows it."""
    energy = PosteriorTilt(Scaled(), torch.zeros(2, dtype=torch.bool))
    noise = PosteriorSnapshot(energy, interval=2)
    objective = Contrastive(Ranking(3), noise, normalize=False)
    u, x = torch.randn(6, 2, generator=generator), torch.randn(6, 2, generator=generator)
    out = objective.loss(energy, u, generator, x)
    assert out.value.item() == pytest.approx(math.log(4), abs=1e-6)
    with torch.no_grad():
        energy.net.scale.add_(1.0)
    assert objective.loss(energy, u, generator, x).value.item() != pytest.approx(math.log(4), abs=1e-3)
    objective.after_step(energy, 1, out)
    assert noise.frozen.net.scale == 1
    objective.after_step(energy, 2, out)
    assert noise.frozen.net.scale == 2
