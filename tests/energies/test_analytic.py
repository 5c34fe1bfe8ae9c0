import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adance.energies import Density, Gaussian, GaussianBase, Uniform, energy_and_gradient

EVENTS = st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple)


def grid(low, high, n):
    line = low + (high - low) * (torch.arange(n, dtype=torch.float64) + 0.5) / n
    return torch.cartesian_prod(line, line), ((high - low) / n) ** 2


def law():
    return Gaussian(torch.tensor([0.5, -1.0], dtype=torch.float64), torch.tensor([0.7, 2.0], dtype=torch.float64))


def test_gaussian_integrates_to_one():
    # The midpoint rule is exact to rounding for a normal law that is far from 0 at the edges.
    points, area = grid(-20, 20, 400)
    assert law().log_prob(points).exp().sum() * area == pytest.approx(1, abs=1e-12)


def test_gaussian_log_density_is_torch_s():
    x = torch.randn(6, 2, dtype=torch.float64)
    right = torch.distributions.Normal(law().mean, law().std).log_prob(x).sum(1)
    torch.testing.assert_close(law().log_prob(x), right)
    torch.testing.assert_close(law()(x), -right)
    torch.testing.assert_close(energy_and_gradient(law(), x)[1], (x - law().mean) / law().std ** 2)


def test_gaussian_samples_have_its_moments(generator):
    n = 50_000
    z = (law().sample(n, generator) - law().mean) / law().std
    # Standardized, n draws: mean ± 5/√n, mean square ± 5√(2/n), correlation ± 5/√n.
    assert z.mean(0).abs().max() < 5 / math.sqrt(n)
    assert (z.square().mean(0) - 1).abs().max() < 5 * math.sqrt(2 / n)
    assert z.prod(1).mean().abs() < 5 / math.sqrt(n)


def test_gaussian_fit_is_the_data_s_moments():
    x = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    fitted = Gaussian.fitted(x)
    assert fitted.mean.tolist() == [2.0, 5.0]
    assert fitted.std.tolist() == pytest.approx([1.0, 1e-3])
    assert Gaussian.fitted(x[:1]).log_prob(x).isfinite().all()


def test_uniform_integrates_to_one_over_its_box():
    box = Uniform((2,), -1.5, 0.5)
    points, area = grid(-3, 3, 600)
    assert box.log_prob(points).exp().sum() * area == pytest.approx(1, abs=1e-6)
    assert box.log_prob(torch.tensor([[0.0, 0.6], [-1.6, 0.0]])).tolist() == [-math.inf] * 2
    assert box.log_prob(torch.tensor([[0.5, -1.5]])).item() == pytest.approx(-2 * math.log(2))


def test_uniform_samples_have_its_moments(generator):
    x = Uniform((1, 2), -1.0, 3.0).sample(50_000, generator)
    n = len(x)
    assert -1 <= x.min() < -0.99
    assert 2.99 < x.max() <= 3
    # The standardized law has E[z⁴] = 9/5: mean ± 5/√n, mean square ± 5√(0.8/n).
    z = (x - 1) / (4 / math.sqrt(12))
    assert z.mean(0).abs().max() < 5 / math.sqrt(n)
    assert (z.square().mean(0) - 1).abs().max() < 5 * math.sqrt(0.8 / n)


@settings(deadline=None, max_examples=20)
@given(EVENTS, st.integers(0, 4))
def test_densities_of_any_event_shape(event, n):
    for density in (Gaussian(torch.zeros(event), torch.ones(())), Uniform(event)):
        assert isinstance(density, Density)
        x = density.sample(n, torch.Generator().manual_seed(0))
        assert x.shape == (n, *event)
        assert density.log_prob(x).shape == density(x).shape == (n,)


def test_densities_follow_dtype_and_leave_the_global_generator(generator):
    before = torch.get_rng_state()
    for density in (law(), Uniform((2,)).double()):
        assert density.sample(3, generator).dtype == torch.float64
    assert torch.equal(torch.get_rng_state(), before)


def test_base_is_half_the_standardized_square():
    base = GaussianBase((2,))
    x = torch.tensor([[1.0, 2.0], [5.0, 4.0], [3.0, 9.0]])
    torch.testing.assert_close(base(x), 0.5 * x.square().sum(1))
    base.fit(x)
    assert base.center.tolist() == [3.0, 5.0]
    # Squared deviations 4 + 4 + 0 and 9 + 1 + 16: their mean over both axes is 34/6.
    assert base.scale.item() == pytest.approx(math.sqrt(34 / 6))
    torch.testing.assert_close(base(x), 0.5 * (x - base.center).square().sum(1) / (34 / 6))


def test_base_of_constant_data_is_finite():
    base = GaussianBase((2,))
    base.fit(torch.full((4, 2), 3.0))
    assert base(torch.tensor([[3.0, 3.0], [4.0, 3.0]])).tolist() == [0.0, 0.5]


@settings(deadline=None, max_examples=15)
@given(EVENTS, st.floats(0.1, 10), st.floats(-5, 5))
def test_base_follows_a_change_of_units(event, factor, shift):
    x = torch.randn(20, *event, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    one, two = GaussianBase(event).double(), GaussianBase(event).double()
    one.fit(x)
    two.fit(factor * x + shift)
    torch.testing.assert_close(two(factor * x + shift), one(x))
