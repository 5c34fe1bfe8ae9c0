import math

import pytest
import torch
from torch.distributions import Distribution

from adance.errors import InputError
from adance.noises import Flow


def seed(number=1):
    return torch.Generator().manual_seed(number)


def flow(data, **settings):
    return Flow(**({"fit_steps": 0, "hidden": (8,), "transforms": 2} | settings)).build(data, seed())


@pytest.mark.parametrize("kind", ["spline", "affine"])
@pytest.mark.parametrize("event", [(1,), (2,), (1, 2, 2)])
def test_draws_have_the_density_that_it_claims(kind, event, generator):
    data = 3 + 2 * torch.randn(500, *event, generator=generator, dtype=torch.float64)
    noise = flow(data, kind=kind)
    with torch.no_grad():
        for parameter in noise.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    x = noise.sample(20_000, data, seed(2)).x
    assert x.shape == (20_000, *event)
    # ∫ q = 1 by importance sampling from the flow: E_p[q/p] with q a normal law inside it
    mean = x.flatten(1).mean(0)
    q = torch.distributions.Normal(mean, x.flatten(1).std(0) / 2)
    weights = (q.log_prob(x.flatten(1)).sum(1) + noise.energy(x)).exp()
    assert abs(weights.mean() - 1) < 5 * weights.std() / math.sqrt(20_000)
    assert weights.std() < 20


def test_it_covers_data_closely_after_its_fit(generator):
    data = torch.randn(2000, 2, generator=generator) * torch.tensor([1.0, 0.2]) + torch.tensor([[5.0, -1.0]])
    data[:, 1] += 0.3 * (data[:, 0] - 5) ** 2
    # the truth: two normal factors
    entropy = 1 + math.log(2 * math.pi) + math.log(0.2)
    before, after = (flow(data, fit_steps=steps).energy(data).mean() for steps in (0, 300))
    assert after < entropy + 0.1 < before


def test_its_randomness_is_the_generator_s_and_no_global_switch_is_left(generator):
    data = torch.randn(50, 2, generator=generator)
    before, checks = torch.get_rng_state(), Distribution._validate_args
    one, two = flow(data, fit_steps=3), flow(data, fit_steps=3)
    assert torch.equal(one.sample(5, data, seed(3)).x, two.sample(5, data, seed(3)).x)
    assert torch.equal(torch.get_rng_state(), before)
    assert Distribution._validate_args == checks


def test_fixed_it_has_nothing_to_train_and_adversarial_everything(generator):
    data = torch.randn(50, 2, generator=generator)
    fixed, adversarial = flow(data), flow(data, adversarial=True)
    assert not any(p.requires_grad for p in fixed.parameters())
    assert not fixed.sample(3, data).x.requires_grad
    trained = [p.requires_grad for p in adversarial.parameters()]
    assert all(trained)
    assert len(trained) == len(list(fixed.parameters())) > 0
    assert adversarial.sample(3, data).x.requires_grad


def test_its_state_is_its_weights_and_the_data_s_place(generator):
    data = torch.randn(50, 2, generator=generator)
    one, two = flow(data, fit_steps=3), flow(3 * data + 1)
    two.load_state_dict(one.state_dict())
    assert torch.equal(one.energy(data), two.energy(data))


def test_bad_settings_are_refused():
    for settings in ({"kind": "cubic"}, {"transforms": 0}, {"fit_steps": -1}, {"fit_lr": 0.0}):
        with pytest.raises(InputError):
            Flow(**settings)
