import math

import pytest
import torch
from torch.nn.functional import softplus

from adance.errors import InputError
from adance.noises import NeuralSampler


def seed(number=1):
    return torch.Generator().manual_seed(number)


def sampler(data, **settings):
    return NeuralSampler(**({"hidden": (8,), "marginal_draws": 16} | settings)).build(data, seed())


def linear_normal(m, weight=1.0, width=-0.5, **settings):
    """x = w z + σξ in one dimension: p_φ is N(0, w² + σ²) in closed form."""
    data = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    noise = sampler(data, hidden=(), marginal_draws=m, base_weight=0.0, **({"entropy": 0.0} | settings))
    (layer,) = noise.net
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[weight], [0.0]]))
        layer.bias.copy_(torch.tensor([0.0, width]))
    std = float(softplus(torch.tensor(width))) + noise.settings.min_std
    return noise, std, torch.distributions.Normal(0.0, math.hypot(weight, std))


def second_moment(x, weight, std):
    """E_z[N(x; wz, σ²)²], which is N(x; wz, σ²/2)/(2σ√π) averaged over z."""
    return torch.distributions.Normal(0.0, math.hypot(weight, std / math.sqrt(2))).log_prob(x).exp() / (
        2 * std * math.sqrt(math.pi)
    )


def test_draws_are_the_sampler_s_law(generator):
    noise, _, law = linear_normal(4)
    x = noise.sample(40_000, torch.zeros(1, 1, dtype=torch.float64), generator).x
    assert abs(x.mean()) < 5 * law.scale / math.sqrt(40_000)
    assert abs(x.var() / law.variance - 1) < 5 * math.sqrt(2 / 40_000)


@pytest.mark.parametrize("m", [8, 32])
def test_density_estimate_is_unbiased_and_its_logarithm_low_as_stated(m, generator):
    noise, std, law = linear_normal(m)
    x, repeats = torch.tensor([[0.0], [0.7]], dtype=torch.float64), 4000
    with torch.no_grad():
        log = -torch.stack([noise.energy(x) for _ in range(repeats)])
    p = law.log_prob(x[:, 0]).exp()
    density = log.exp()
    assert ((density.mean(0) - p).abs() < 5 * density.std(0) / math.sqrt(repeats)).all()
    # ½ Var(p̂)/p²; the next terms of the expansion are of the order of its square
    stated = (second_moment(x[:, 0], 1.0, std) / p**2 - 1) / (2 * m)
    bias = log.mean(0) - p.log()
    assert (bias < 0).all()
    assert ((bias + stated).abs() < 5 * log.std(0) / math.sqrt(repeats) + 8 * stated**2).all()


def test_base_noise_is_mixed_in(generator):
    data = torch.randn(400, 2, generator=generator, dtype=torch.float64)
    noise = sampler(data, base_weight=0.3)
    with torch.no_grad():
        noise.net[-1].bias[:2] += 100.0  # the sampler's draws are far away
    x = noise.sample(20_000, data, generator).x
    from_base = (x[:, 0] < 50).double().mean()
    assert abs(from_base - 0.3) < 5 * math.sqrt(0.3 * 0.7 / 20_000)
    near = noise.energy(data)
    torch.testing.assert_close(near, noise.base.energy(data) - math.log(0.3))


def gradient_of_draws(noise, data, n, generator):
    """The adversary's gradient of E_noise[f(x)], f(x) = sin(x) + x, through its draws."""
    sample = noise.sample(n, data, generator)
    values = (sample.x.sin() + sample.x).flatten()
    noise.energy(sample.x.detach(), sample)  # as an objective does; its graph is not used here
    term = sample.adversary_term(values.detach)
    value = term if noise.settings.gradient == "reinforce" else values.mean()
    parameters = list(noise.net.parameters())
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, parameters, allow_unused=False)])


@pytest.mark.parametrize("base_weight", [0.0, 0.4])
def test_reinforce_is_the_reparameterised_gradient_in_expectation(base_weight, generator):
    data = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    found = {}
    for gradient in ("reparameterized", "reinforce"):
        noise = sampler(data, gradient=gradient, base_weight=base_weight, entropy=0.0, hidden=(3,), marginal_draws=2)
        repeats = torch.stack([gradient_of_draws(noise, data, 300, generator) for _ in range(300)])
        found[gradient] = repeats.mean(0), repeats.var(0) / 300
    (one, one_error), (two, two_error) = found.values()
    assert one.abs().max() > 0.05
    assert ((one - two).abs() < 5 * (one_error + two_error).sqrt()).all()
    assert two_error.sum() > one_error.sum()  # why it is not the default


@pytest.mark.parametrize("gradient", ["reparameterized", "reinforce"])
def test_entropy_term_widens_the_sampler(gradient, generator):
    # H of N(0, w² + σ²) is ½ log(w² + σ²) + const: its slope in w is w/(w² + σ²), less the bias of the estimate.
    noise, std, _ = linear_normal(512, gradient=gradient, entropy=2.0)
    data, slopes = torch.zeros(1, 1, dtype=torch.float64), []
    for _ in range(150):
        sample = noise.sample(256, data, generator)
        noise.energy(sample.x, sample)
        term = sample.adversary_term(lambda: torch.zeros(256, dtype=torch.float64))
        (slope,) = torch.autograd.grad(term, noise.net[0].weight)
        slopes.append(slope[0, 0])
    slopes = torch.stack(slopes)
    right = 2.0 * 1.0 / (1.0 + std**2)
    assert abs(slopes.mean() - right) < 5 * slopes.std() / math.sqrt(150) + 0.02


def test_only_the_sampler_is_the_adversary(generator):
    data = torch.randn(40, 1, 2, 2, generator=generator)
    noise = sampler(data)
    assert {id(p) for p in noise.parameters() if p.requires_grad} == {id(p) for p in noise.net.parameters()}
    x = noise.sample(6, data, generator).x
    assert x.shape == (6, 1, 2, 2)
    assert noise.energy(x).shape == (6,)


def test_bad_settings_are_refused():
    for settings in (
        {"base_weight": 1.0},
        {"entropy": -1.0},
        {"marginal_draws": 0},
        {"min_std": 0.0},
        {"gradient": "score"},
        {"base": "cauchy"},
    ):
        with pytest.raises(InputError):
            NeuralSampler(**settings)
