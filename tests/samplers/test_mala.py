import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adance.errors import InputError
from adance.samplers import MALA, run_chains


def quadratic(x):
    return 0.5 * x.flatten(1).square().sum(1)


def test_variance_is_exact_at_a_step_where_langevin_is_off(generator):
    # Five standard deviations of the variance of n normal draws, √(2/n) each.
    n = 100_000
    x = run_chains(MALA(40, 0.3), quadratic, torch.zeros(n, 1), generator=generator).x
    assert abs(x.var() - 1) < 5 * math.sqrt(2 / n)
    assert abs(x.mean()) < 5 / math.sqrt(n)


@pytest.mark.parametrize(("h", "temperature"), [(1.5, 1.0), (0.3, 0.5), (2.5, 2.0)])
def test_the_target_is_invariant_at_any_step(h, temperature, generator):
    # From exact draws; Langevin without the Metropolis step has variance T/(1 − h/2): 4 T at h = 1.5, none at 2.5.
    n = 100_000
    x = math.sqrt(temperature) * torch.randn(n, 1, generator=generator)
    chains = run_chains(MALA(10, h, temperature), quadratic, x, generator=generator)
    assert abs(chains.x.var() - temperature) < 5 * temperature * math.sqrt(2 / n)
    kurtosis = chains.x.pow(4).mean() / temperature**2
    assert abs(kurtosis - 3) < 5 * math.sqrt(96 / n)  # Var[x⁴] = 105 − 9
    assert 0.05 < chains.acceptance.mean() < 0.999


def test_a_law_that_is_not_normal_is_invariant(generator):
    # E = x⁴/4: with t = x⁴/4 ~ Gamma(¼, 1), E[x⁴] = 1 exactly, Var[x⁴] = 16·¼ = 4.
    n = 50_000
    x = run_chains(MALA(150, 0.3), lambda x: x.pow(4).sum(1) / 4, torch.zeros(n, 1), generator=generator).x
    assert abs(x.pow(4).mean() - 1) < 5 * math.sqrt(4 / n)


def test_proposals_with_nan_energy_are_refused(generator):
    def cut(x):
        return torch.where(x > 0.5, math.nan, 0.5 * x.square()).sum(1)

    n = 50_000
    chains = run_chains(MALA(150, 0.3), cut, torch.zeros(n, 1), generator=generator)
    assert chains.x.max() <= 0.5
    assert chains.finite.all()
    # Refusing them leaves the normal law cut off at ½, of mean −φ(½)/Φ(½) and a variance below 1.
    phi, Phi = math.exp(-0.125) / math.sqrt(2 * math.pi), 0.5 * (1 + math.erf(0.5 / math.sqrt(2)))
    assert abs(chains.x.mean() + phi / Phi) < 5 / math.sqrt(n)


@pytest.mark.parametrize("energy", [math.inf, -math.inf])
def test_proposals_with_infinite_energy_are_refused(energy, generator):
    def cut(x):
        return torch.where(x > 0.5, energy, 0.5 * x.square()).sum(1)

    chains = run_chains(MALA(20, 0.3), cut, torch.zeros(1000, 1), generator=generator)
    assert chains.x.max() <= 0.5
    assert chains.finite.all()


@pytest.mark.parametrize("target", [0.574, 0.8])
def test_adaptation_reaches_the_target_acceptance(target, generator):
    kernel = MALA(200, 5.0, target_acceptance=target)
    x = torch.randn(1000, 10, generator=generator)
    warm = run_chains(kernel, quadratic, x, generator=generator, adapt=200)
    after = run_chains(kernel, quadratic, warm.x, 50, generator=generator, step_size=warm.step_size)
    assert torch.equal(after.step_size, warm.step_size)
    # 50,000 coins: standard deviation 0.002 if independent; the step itself jitters by adaptation·0.016.
    assert abs(after.acceptance.mean() - target) < 0.02
    assert warm.acceptance[0] < 0.1


def test_gradients_are_counted_with_the_first_one(generator):
    seen = []

    def counting(x):
        seen.append(len(x))
        return quadratic(x)

    assert run_chains(MALA(5), counting, torch.zeros(3, 2), generator=generator).gradients == sum(seen) == 18


def test_settings_are_kept_apart_from_state(generator):
    kernel = MALA(20, 0.5)
    run_chains(kernel, quadratic, torch.zeros(10, 2), generator=generator, adapt=20)
    assert kernel.step_size == 0.5


@settings(deadline=None, max_examples=10)
@given(
    st.sampled_from(
        [
            {"steps": -1},
            {"step_size": 0.0},
            {"temperature": 0.0},
            {"target_acceptance": 1.0},
            {"target_acceptance": 0.0},
            {"adaptation": -0.1},
        ]
    )
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError, match="MALA"):
        MALA(**settings)
