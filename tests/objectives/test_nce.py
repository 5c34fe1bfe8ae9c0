import math

import pytest
import torch
from torch import nn

from adance.contrasts import Logistic
from adance.energies import MLP, Gaussian, evaluate
from adance.errors import InputError
from adance.noises import FixedNoise
from adance.objectives import NCE, Contrastive, LogRatio

LOG_Z = 0.5 * math.log(2 * math.pi)


class Parabola(nn.Module):
    """½a(x − b)²."""

    def __init__(self, a=0.5, b=0.0):
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a, dtype=torch.float64))
        self.b = nn.Parameter(torch.tensor(b, dtype=torch.float64))

    def forward(self, x):
        return 0.5 * self.a * (x - self.b).square().sum(1)


def wide_noise():
    noise = Gaussian(torch.zeros(1, dtype=torch.float64), torch.full((1,), 2.0, dtype=torch.float64))
    return Contrastive(Logistic(1), FixedNoise(noise), LogRatio(constant="learned")).double()


def fit(objective, energy, data):
    parameters = [*energy.parameters(), *objective.parameters()]
    optimizer = torch.optim.LBFGS(parameters, max_iter=60, line_search_fn="strong_wolfe", tolerance_change=1e-12)

    def closure():
        optimizer.zero_grad()
        value = objective.loss(energy, data, torch.Generator().manual_seed(1)).value
        value.backward()
        return value

    optimizer.step(closure)


def normal_data(n, generator):
    return 1 + torch.randn(n, 1, generator=generator, dtype=torch.float64)


def test_normal_data_against_wider_normal_noise(generator):
    # Asymptotic standard deviations of the estimates, times √n (Gutmann and Hyvärinen 2012, theorem 3, by quadrature):
    # 1.78 for a, 1.36 for b, 1.46 for log Z. Five of them at n = 250,000 are 0.018, 0.014 and 0.0146.
    n = 250_000
    energy, objective = Parabola(), wide_noise()
    fit(objective, energy, normal_data(n, generator))
    assert abs(energy.a.item() - 1) < 5 * 1.78 / math.sqrt(n)
    assert abs(energy.b.item() - 1) < 5 * 1.36 / math.sqrt(n)
    assert abs(objective.log_ratio.log_z.item() - LOG_Z) < 5 * 1.46 / math.sqrt(n) < 0.02


def test_named_noise_fitted_to_the_data_serves(generator):
    # The noise is then the data's own law; the same theorem gives 2 for a, √2 for b and 1 for log Z.
    n = 100_000
    energy, data = Parabola(), normal_data(n, generator)
    objective = NCE("gaussian").build(energy, data)
    fit(objective, energy, data)
    assert abs(energy.a.item() - 1) < 5 * 2 / math.sqrt(n)
    assert abs(energy.b.item() - 1) < 5 * math.sqrt(2 / n)
    assert abs(objective.log_normalizer().item() - LOG_Z) < 5 / math.sqrt(n)


def test_the_truth_has_no_gradient(generator):
    # At the true parameters the expected gradient is 0; its standard deviations times √n, by quadrature, are 1.20 for
    # a, 1.48 for b and 0.58 for log Z.
    n = 200_000
    energy, objective = Parabola(1.0, 1.0), wide_noise()
    with torch.no_grad():
        objective.log_ratio.log_z.fill_(LOG_Z)
    objective.loss(energy, normal_data(n, generator), generator).value.backward()
    for parameter, deviation in ((energy.a, 1.2), (energy.b, 1.48), (objective.log_ratio.log_z, 0.58)):
        assert abs(parameter.grad) < 5 * deviation / math.sqrt(n)


def test_log_ratio_is_that_of_the_normalized_densities(generator):
    energy, objective = Parabola(2.0, 1.0), wide_noise()
    with torch.no_grad():
        objective.log_ratio.log_z.fill_(0.3)
    x = normal_data(50, generator)
    out = objective.loss(energy, x, torch.Generator().manual_seed(2))
    noise = objective.noise.sample(50, x, torch.Generator().manual_seed(2)).x
    log_noise = torch.distributions.Normal(0.0, 2.0).log_prob
    r_data, r_noise = (-energy(z) - 0.3 - log_noise(z).sum(1) for z in (x, noise))
    right = -torch.sigmoid(r_data).log().mean() - torch.sigmoid(-r_noise).log().mean()
    torch.testing.assert_close(out.value, 2 * right)
    torch.testing.assert_close(out.metrics["ratio_data"], r_data.mean().detach())
    torch.testing.assert_close(out.metrics["ratio_noise"], r_noise.mean().detach())
    assert out.metrics["log_z"].item() == pytest.approx(0.3)


@pytest.mark.parametrize("noises", [1, 5])
def test_log_z_only_shifts_the_energy(noises, generator):
    x = torch.randn(20, 2, generator=generator, dtype=torch.float64)

    class Shifted(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.c = nn.Parameter(torch.tensor(c, dtype=torch.float64))

        def forward(self, x):
            return x.square().sum(1) + self.c

    one, two = (NCE(noises=noises).build(Shifted(0.0), x) for _ in range(2))
    with torch.no_grad():
        one.log_ratio.log_z.fill_(0.5)
    values = [o.loss(Shifted(c), x, torch.Generator().manual_seed(1)).value for o, c in ((one, 0.0), (two, 0.5))]
    torch.testing.assert_close(*values)


def test_log_z_is_a_parameter_unless_told_otherwise():
    energy, x = Parabola(), torch.zeros(4, 1, dtype=torch.float64)
    learned, fixed = NCE().build(energy, x), NCE(learn_log_z=False).build(energy, x)
    assert [name for name, _ in learned.named_parameters()] == ["log_ratio.log_z"]
    assert list(fixed.parameters()) == []
    assert fixed.log_normalizer() == learned.log_normalizer() == 0
    learned.log_normalizer().add_(1)
    assert learned.log_ratio.log_z == 0
    assert (learned.temperature, learned.log_ratio.margin) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["gaussian", "uniform"])
def test_energies_that_explain_the_noise_have_ratio_zero(name, generator):
    class Law(nn.Module):
        def __init__(self, objective):
            super().__init__()
            self.objective = objective
            self.weight = nn.Parameter(torch.zeros(()))

        def forward(self, x):
            return -self.objective.noise.density.log_prob(x) + self.weight

    x = torch.randn(30, 2, generator=generator)
    objective = NCE(name).build(nn.Linear(2, 1), x)
    out = objective.loss(Law(objective), x, generator)
    assert out.value.item() == pytest.approx(4 * math.log(2))
    assert out.metrics["effective_sample_share"].item() == pytest.approx(1)
    assert out.metrics["auc"].isfinite()


def test_state_holds_the_noise_and_log_z(generator):
    x = torch.randn(30, 2, generator=generator)
    energy = nn.Sequential(nn.Linear(2, 1), nn.Flatten(0))
    one, two = NCE().build(energy, x * 3 + 1), NCE().build(energy, x)
    with torch.no_grad():
        one.log_ratio.log_z.fill_(0.7)
    two.load_state_dict(one.state_dict())
    values = [o.loss(energy, x, torch.Generator().manual_seed(1)).value for o in (one, two)]
    assert torch.equal(*values)


def test_many_noises_have_one_row_each(generator):
    x = torch.randn(6, 2, generator=generator)
    energy = nn.Sequential(nn.Linear(2, 1), nn.Flatten(0))
    out = NCE(noises=7).build(energy, x).loss(energy, x, generator)
    assert (out.energy_data.shape, out.energy_noise.shape) == ((6,), (42,))
    assert evaluate(energy, x).shape == (6,)


def test_bad_settings_are_refused():
    for settings in ({"noise": "laplace"}, {"noises": 0}, {"energy_penalty": -1.0}):
        with pytest.raises(InputError):
            NCE(**settings)


def test_a_datum_outside_the_noise_is_seen_at_once(generator):
    energy = MLP((1, 2, 2), (4,))
    objective = NCE("uniform").build(energy, torch.zeros(3, 1, 2, 2))
    assert objective.loss(energy, torch.zeros(3, 1, 2, 2), generator).value.isfinite()
    assert objective.loss(energy, torch.full((3, 1, 2, 2), 1.3), generator).value.isnan()
