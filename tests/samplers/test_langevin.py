import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adance.errors import InputError
from adance.samplers import Langevin, run_chains


def quadratic(x):
    return 0.5 * x.flatten(1).square().sum(1)


def ends(kernel, chains, generator, energy=quadratic):
    return run_chains(kernel, energy, torch.zeros(chains, 1, dtype=torch.float64), generator=generator).x


def test_stationary_variance_at_temperature_one(generator):
    # The sample variance of n normal draws has standard deviation var·√(2/n); five of them. Started at 0, the variance
    # is off by a factor 0.7^120 only.
    n, right = 100_000, 1 / (1 - 0.3 / 2)
    found = ends(Langevin(60, 0.3, math.sqrt(0.6)), n, generator)
    assert abs(found.var() - right) < 5 * right * math.sqrt(2 / n)
    assert abs(found.mean()) < 5 * math.sqrt(right / n)


def test_stationary_variance_with_absolute_noise(generator):
    n, right = 100_000, 0.2**2 / (1 - (1 - 0.1) ** 2)
    found = ends(Langevin(100, 0.1, 0.2), n, generator)
    assert abs(found.var() - right) < 5 * right * math.sqrt(2 / n)
    assert right == pytest.approx(0.2105, abs=1e-4)


def test_variance_after_each_step_from_zero(generator):
    # Var after k steps from 0: σ²(1 + q + … + q^(k−1)), q = (1 − α)².
    seen = {}
    run_chains(
        Langevin(3, 0.5, 0.7),
        quadratic,
        torch.zeros(100_000, 1),
        generator=generator,
        callback=lambda i, x: seen.update({i: x.var()}),
    )
    for k, var in seen.items():
        right = 0.49 * sum(0.25**i for i in range(k))
        assert abs(var - right) < 5 * right * math.sqrt(2 / 100_000)
    assert list(seen) == [1, 2, 3]


def test_one_step_is_the_formula():
    x = torch.randn(5, 2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    chains = run_chains(Langevin(1, 0.2, 0.3), quadratic, x, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(chains.x, x - 0.2 * x + 0.3 * noise, rtol=1e-14, atol=1e-14)


def test_without_noise_it_is_gradient_descent():
    x = torch.linspace(-2, 2, 7, dtype=torch.float64)[:, None]
    by_hand = x.clone()
    for _ in range(10):
        by_hand = by_hand - 0.1 * 4 * by_hand**3
    found = run_chains(Langevin(10, 0.1, noise_std=0), lambda x: x.pow(4).sum(1), x).x
    torch.testing.assert_close(found, by_hand, rtol=1e-14, atol=0)
    assert Langevin(noise_std=0).temperature == 0


def test_no_steps_give_a_copy_of_the_start():
    x = torch.randn(4, 2)
    chains = run_chains(Langevin(steps=0), quadratic, x)
    assert torch.equal(chains.x, x)
    assert chains.x.data_ptr() != x.data_ptr()
    assert (chains.energy.shape, chains.gradients) == ((0,), 0)
    assert chains.finite.all()


def test_the_start_is_not_altered(generator):
    x = torch.randn(4, 2)
    before = x.clone()
    run_chains(Langevin(3), quadratic, x, generator=generator)
    assert torch.equal(x, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_is_kept(dtype, generator):
    chains = run_chains(Langevin(3), quadratic, torch.zeros(4, 2, dtype=dtype), generator=generator)
    for values in (chains.x, chains.energy, chains.gradient_norm, chains.acceptance):
        assert values.dtype == dtype


def test_positions_stay_within_bounds(generator):
    seen = []
    kernel = Langevin(20, 0.1, 1.0, bounds=(-0.5, 0.25))
    run_chains(kernel, quadratic, torch.zeros(500, 2), generator=generator, callback=lambda i, x: seen.append(x))
    seen = torch.stack(seen)
    assert (seen.min(), seen.max()) == (-0.5, 0.25)


def test_the_gradient_s_norm_leaves_out_what_pushes_against_the_bounds(generator):
    slopes = torch.tensor([3.0, -4.0, 12.0])

    def slope(x):
        return x @ slopes

    # at the lower bound the first axis cannot move, and the last only by 0.1 of the 1.2 of its gradient step
    x = torch.tensor([[-1.0, 0.0, -0.9], [0.0, 0.0, 0.5]])
    kernel = Langevin(1, 0.1, noise_std=0.5, bounds=(-1.0, 1.0))
    _, info = kernel.step(slope, kernel.init(slope, x), generator)
    expected = torch.tensor([math.hypot(4.0, 1.0), 13.0])
    assert torch.allclose(info.gradient_norm, expected, rtol=1e-5)
    free = Langevin(1, 0.1, noise_std=0.5)
    assert torch.allclose(free.step(slope, free.init(slope, x), generator)[1].gradient_norm, torch.tensor(13.0))


def test_temperature_and_noise_follow_from_each_other():
    assert Langevin(step_size=0.1, noise_std=0.2).temperature == pytest.approx(0.2)
    assert Langevin(step_size=1.0, noise_std=0.005).temperature == pytest.approx(1.25e-5)
    assert Langevin(step_size=0.3).noise_std == pytest.approx(math.sqrt(0.6))
    assert Langevin(step_size=0.3, temperature=0.5).noise_std == pytest.approx(math.sqrt(0.3))
    with pytest.raises(InputError, match=r"noise_std.*temperature"):
        Langevin(noise_std=0.1, temperature=1.0)


def test_temperature_scales_the_stationary_law(generator):
    n, right = 100_000, 0.25 / (1 - 0.1 / 2)
    found = ends(Langevin(100, 0.1, temperature=0.25), n, generator)
    assert abs(found.var() - right) < 5 * right * math.sqrt(2 / n)


@settings(deadline=None, max_examples=15)
@given(
    st.sampled_from(
        [
            {"steps": -1},
            {"step_size": 0.0},
            {"step_size": math.nan},
            {"noise_std": -0.1},
            {"noise_std": math.nan},
            {"temperature": -1.0},
            {"bounds": (1.0, 1.0)},
            {"bounds": (1.0, -1.0)},
        ]
    )
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError):
        Langevin(**settings)


def test_negative_steps_are_refused():
    with pytest.raises(InputError, match="-2"):
        run_chains(Langevin(), quadratic, torch.zeros(2, 1), steps=-2)
