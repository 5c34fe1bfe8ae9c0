"""On normal data with a normal-family energy every objective finds mean and precision, and log Z where it claims it.

Tolerances are five asymptotic standard deviations: H⁻¹GH⁻¹/n with the Hessian H and the variance G of one row's loss,
both found by automatic differentiation at the truth on rows of their own.
"""

import math

import pytest
import torch
from torch import nn
from torch.distributions import Normal
from torch.func import grad, hessian, vmap

from adance.contrasts import KL, Conditional, Custom, Hellinger, ItakuraSaito, LeastSquares, Logistic, Power, Ranking
from adance.noises import FittedNoise, FixedNoise, Noise, NoiseSample, PerturbationNoise
from adance.objectives import ACE, BRM, FCE, NCE, AdaBRM, AdaNCE, ConditionalNCE, Contrastive, LogRatio, RankingNCE
from adance.samplers import MALA

MEAN, PRECISION, LOG_Z = 1.0, 1.0, 0.5 * math.log(2 * math.pi)
NOISE = Normal(torch.zeros(1, dtype=torch.float64), torch.full((1,), 2.0, dtype=torch.float64))


class Parabola(nn.Module):
    """½a(x − b)²."""

    def __init__(self, a=0.6, b=0.3):
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a, dtype=torch.float64))
        self.b = nn.Parameter(torch.tensor(b, dtype=torch.float64))

    def forward(self, x):
        return 0.5 * self.a * (x - self.b).square().sum(1)


def draw_data(n, number=1):
    return MEAN + torch.randn(n, 1, generator=torch.Generator().manual_seed(number), dtype=torch.float64)


def deviations(recipe, n, rows=20_000):
    """Asymptotic standard deviations of a, b and, where it is learned, log Z, for n data."""
    x = draw_data(rows, 11)
    generator = torch.Generator().manual_seed(12)
    objective = recipe.build(nn.Identity(), x, generator=generator)
    y = objective.noise.sample(rows * objective.contrast.noises, x, generator).x
    reference = [objective.noise.energy(z).view(rows, -1) for z in (x, y)]
    learned = objective.log_ratio.log_z is not None
    truth = torch.tensor([PRECISION, MEAN, *([LOG_Z] if learned else [])], dtype=torch.float64)

    def loss(theta, x, y, on_data, on_noise):
        energy = lambda z: 0.5 * theta[0] * (z - theta[1]).square() + (theta[2] if learned else 0.0)  # noqa: E731
        return objective.contrast(on_data[:, 0] - energy(x)[:, 0], on_noise - energy(y))

    y = y.view(rows, -1)
    one = vmap(grad(loss), (None, 0, 0, 0, 0))(truth, x[:, None], y[:, None], *(z[:, None] for z in reference))
    curvature = torch.linalg.inv(hessian(loss)(truth, x, y, *reference))
    return ((curvature @ torch.cov(one.T) @ curvature).diagonal() / n).sqrt()


def fit(objective, energy, data):
    objective.to(torch.float64)
    parameters = [*energy.parameters(), *objective.own_parameters()]
    optimizer = torch.optim.LBFGS(parameters, max_iter=80, line_search_fn="strong_wolfe", tolerance_change=1e-12)

    def closure():
        optimizer.zero_grad()
        value = objective.loss(energy, data, torch.Generator().manual_seed(2)).value
        value.backward()
        return value

    optimizer.step(closure)


def wide(contrast):
    return Contrastive(contrast, FixedNoise(NOISE), LogRatio(constant="learned"))


DIRECT = {
    "NCE": lambda: NCE(FixedNoise(NOISE)),
    "NCE, 5 noises": lambda: NCE(FixedNoise(NOISE), 5),
    "NCE, mixture": lambda: NCE(FittedNoise("mixture", 2)),
    "BRM KL": lambda: BRM("kl", FixedNoise(NOISE)),
    "BRM least squares": lambda: BRM("least_squares", FixedNoise(NOISE)),
    "BRM Mahalanobis": lambda: BRM("mahalanobis", FixedNoise(NOISE)),
    "BRM Itakura-Saito": lambda: BRM("itakura_saito", FixedNoise(Normal(NOISE.loc + 1, NOISE.scale / 1.8))),
    "BRM Hellinger": lambda: BRM("hellinger", FixedNoise(NOISE)),
    "BRM power 1/2": lambda: wide(Power(0.5)),
    "BRM own": lambda: wide(Custom(lambda u: u * u.log() + u**2)),
    "BRM KL corrected": lambda: wide(KL(ratio_bound=20.0)),
    "ranking": lambda: RankingNCE(FixedNoise(NOISE), 4),
    "ranking, unequal": lambda: RankingNCE(FixedNoise(NOISE), 2, (0.5, 0.3, 0.2)),
    "conditional": lambda: ConditionalNCE(noises=3),
    "conditional, wide": lambda: Contrastive(Conditional(), PerturbationNoise(torch.full((1,), 2.0))),
}


@pytest.mark.parametrize("make", DIRECT.values(), ids=DIRECT.keys())
def test_fixed_noise_finds_the_law(make):
    n, energy = 20_000, Parabola()
    data, deviation = draw_data(n), deviations(make(), n)
    objective = make().build(energy, data)
    fit(objective, energy, data)
    found = [energy.a, energy.b, *objective.own_parameters()]
    right = [PRECISION, MEAN, LOG_Z][: len(found)]
    assert max(deviation) < 0.06
    for value, truth, s in zip(found, right, deviation.tolist(), strict=True):
        assert abs(value.item() - truth) < 5 * s
    assert objective.self_normalizing == (objective.log_ratio.log_z is not None)


def test_the_deviations_are_those_of_the_theorem():
    # Against quadrature of Gutmann and Hyvärinen's theorem 3: 1.78, 1.36 and 1.46 for normal noise of scale 2.
    found = deviations(NCE(FixedNoise(NOISE)), 1)
    torch.testing.assert_close(found, torch.tensor([1.78, 1.36, 1.46], dtype=torch.float64), rtol=0.05, atol=0)


def train(recipe, energy, data, steps, lr, batch, adversary_lr=1e-3):
    """The objective after Adam, and the mean of the last half's iterates (Polyak and Ruppert)."""
    generator = torch.Generator().manual_seed(3)
    objective = recipe.build(energy, data, batch_size=batch, generator=generator).to(torch.float64)
    objective.start(energy, data, generator)
    own = [*energy.parameters(), *objective.own_parameters()]
    optimizers = [torch.optim.Adam(own, lr)]
    if objective.adversary_parameters():
        optimizers.append(torch.optim.Adam(objective.adversary_parameters(), adversary_lr, maximize=True))
    total, iterates = torch.zeros(len(own), dtype=torch.float64), 0
    for step in range(1, steps + 1):
        rows = torch.randint(len(data), (batch,), generator=generator)
        out = objective.loss(energy, data[rows], generator)
        for optimizer in optimizers:
            optimizer.zero_grad()
        out.value.backward()
        for optimizer in optimizers:
            optimizer.step()
        objective.after_step(energy, step, out)
        if step > steps // 2:
            total += torch.stack([p.detach() for p in own])
            iterates += 1
    return objective, (total / iterates).tolist()


ADAPTIVE = {
    "AdaNCE": lambda: AdaNCE(MALA(10), interval=5, ratio_temperature=1.0, pool=512, margin=0.0),
    "AdaNCE, margin": lambda: AdaNCE(MALA(10), interval=5, ratio_temperature=1.0, pool=512),
    "AdaNCE, mixture": lambda: AdaNCE(MALA(10), interval=5, ratio_temperature=1.0, pool=512, snapshots=3),
    "AdaBRM KL": lambda: AdaBRM("kl", sampler=MALA(10), interval=5, pool=512),
    "AdaBRM least squares": lambda: AdaBRM("least_squares", sampler=MALA(10), interval=5, pool=512),
    "AdaBRM Hellinger": lambda: AdaBRM("hellinger", sampler=MALA(10), interval=5, pool=512),
    "AdaBRM Itakura-Saito": lambda: AdaBRM("itakura_saito", sampler=MALA(10), interval=5, pool=512),
}


@pytest.mark.parametrize("make", ADAPTIVE.values(), ids=ADAPTIVE.keys())
def test_snapshots_find_the_law(make):
    n, batch, steps = 20_000, 128, 600
    objective, (a, b) = train(make(), Parabola(0.8, 0.6), draw_data(n), steps, 0.02, batch)
    # Likelihood's standard deviations are √2 and 1 over √n. The averaged iterates add those of data and noise drawn in
    # half the steps; a pool of 512 serves 5 steps of 128 in place of 640 draws.
    extra = 1 / (batch * steps / 2) + 1 / (512 * steps / 2 / 5)
    assert abs(a - PRECISION) < 5 * math.sqrt(2 * (1 / n + extra))
    assert abs(b - MEAN) < 5 * math.sqrt(1 / n + extra)
    assert objective.log_normalizer() is None
    assert not objective.self_normalizing


ADVERSARIAL = {
    "FCE": lambda: FCE(kind="affine", transforms=1, hidden=(4,), fit_steps=100),
    "ACE": lambda: ACE(hidden=(8,), marginal_draws=128),
    "ACE, REINFORCE": lambda: ACE(hidden=(8,), marginal_draws=128, gradient="reinforce"),
    "ACE, sampler alone": lambda: ACE(hidden=(8,), marginal_draws=256, base_weight=0.0, min_std=0.3),
}


@pytest.mark.parametrize("make", ADVERSARIAL.values(), ids=ADVERSARIAL.keys())
def test_adversarial_noise_finds_the_law_and_log_z(make):
    n, batch, steps = 20_000, 128, 1000
    recipe = make()
    objective, (a, b, log_z) = train(recipe, Parabola(0.8, 0.6), draw_data(n), steps, 0.02, batch)
    # Noise near the data: NCE's deviations are 2, √2 and 1 over √n at p_n = p_data (theorem 3), for the data and again
    # for what was drawn in half the steps.
    extra = 1 / n + 1 / (batch * steps / 2)
    bias = stated_bias(objective, draw_data(2000, 8)) if isinstance(recipe, ACE) else 0.0
    assert bias < 0.05
    assert abs(a - PRECISION) < 5 * 2 * math.sqrt(extra) + 4 * bias
    assert abs(b - MEAN) < 5 * math.sqrt(2 * extra) + bias
    assert abs(log_z - LOG_Z) < 5 * math.sqrt(extra) + 2 * bias
    assert objective.self_normalizing


@torch.no_grad()
def stated_bias(objective, x):
    """By how much log p̂_n is low: half the variance of p̂_n over its square, here the mean over data."""
    log = torch.stack([-objective.noise.energy(x) for _ in range(100)])
    density = log.exp()
    return float((0.5 * density.var(0) / density.mean(0) ** 2).mean())


def test_ace_with_few_latent_draws_is_off_to_the_stated_side():
    # With two draws the energies take over log p̂_n's shortfall: exp(−E − log Z) is too low everywhere the sampler is.
    recipe = ACE(hidden=(8,), marginal_draws=2, base_weight=0.0)
    objective, (a, _, log_z) = train(recipe, Parabola(0.8, 0.6), draw_data(20_000), 600, 0.02, 128)
    bias = stated_bias(objective, draw_data(2000, 8))
    assert bias > 0.1
    assert 0.5 * math.log(2 * math.pi / a) - log_z < -0.05


def test_one_law_against_itself_has_ratio_one_on_new_points(generator):
    # Two samples of one law: the second is the noise, drawn with replacement; its density is neither known nor needed.
    class Second(Noise):
        """A sample as noise: r is the log-ratio itself when its energy is taken as 0."""

        def sample(self, n, data, generator=None, condition=None):
            return NoiseSample(second[torch.randint(len(second), (n,), generator=generator)])

        def energy(self, x, sample=None, condition=None):
            return x.new_zeros(len(x))

    class Ratio(nn.Module):
        """−log u, quadratic."""

        def __init__(self):
            super().__init__()
            self.weights = nn.Parameter(torch.full((3,), 0.3, dtype=torch.float64))

        def forward(self, x):
            return -(torch.cat([torch.ones_like(x), x, x**2], 1) * self.weights).sum(1)

    n = 20_000
    first, second, new = (torch.randn(n, 1, generator=generator, dtype=torch.float64) for _ in range(3))
    for contrast in (Logistic(), KL(), LeastSquares(), ItakuraSaito(), Hellinger()):
        energy = Ratio()
        fit(Contrastive(contrast, Second()), energy, first)
        r = -energy(new).detach()
        # At u = 1 the weights' covariance is 2M⁻¹/n, and that of drawing with replacement, M⁻¹/n, with the moments M of
        # (1, x, x²); so Var r(x) averages to 3·3/n.
        assert r.square().mean() < 5**2 * 9 / n
        assert (r.exp() > 0).all()
    fit(Contrastive(Ranking(3), Second()), energy := Ratio(), first)
    r = -energy(new).detach() - energy.weights[0].detach()
    assert (r - r.mean()).square().mean() < 5**2 * 9 / n
