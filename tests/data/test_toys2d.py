import math

import pytest
import torch
from scipy import stats

from adance.data import TOYS
from adance.energies import NoisyCurves, Rings

EXPECTED = {"moons", "circles", "8gaussians", "pinwheel", "checkerboard", "2spirals", "rings", "swissroll"}
FINE = 200  # cells along a side


def grid(extent, cells):
    """Centers (cells**2, 2) of square cells, float64, and a cell's area."""
    width = 2 * extent / cells
    centers = -extent + width * (torch.arange(cells, dtype=torch.float64) + 0.5)
    return torch.cartesian_prod(centers, centers), width**2


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_names():
    assert set(TOYS) == EXPECTED
    assert all(TOYS[name]().name == name for name in TOYS)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_density_is_normalized_and_is_that_of_the_samples(name):
    toy = TOYS[name]()
    points, area = grid(toy.extent, FINE)
    mass = toy.log_prob(points.float()).double().exp() * area
    assert mass.sum().item() == pytest.approx(1, abs=1e-3)

    coarse, n = 20, 20_000
    blocks = mass.reshape(coarse, FINE // coarse, coarse, FINE // coarse).sum((1, 3)).flatten()
    x = toy.sample(n, generator(1))
    assert x.shape == (n, 2)
    assert x.dtype == torch.float32
    cell = ((x + toy.extent) / (2 * toy.extent) * coarse).floor().clamp(0, coarse - 1).long()
    counts = torch.bincount(cell[:, 0] * coarse + cell[:, 1], minlength=coarse**2).double()
    large = blocks * n >= 5
    observed = torch.cat([counts[large], counts[~large].sum()[None]])
    expected = torch.cat([blocks[large], blocks[~large].sum()[None]]) * n
    keep = expected > 0
    assert observed[~keep].sum() == 0
    chi2 = ((observed - expected)[keep].square() / expected[keep]).sum().item()
    assert stats.chi2.sf(chi2, int(keep.sum()) - 1) > 1e-3


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_extent_holds_the_mass_and_samples_have_density(name):
    toy = TOYS[name]()
    x = toy.sample(20_000, generator())
    assert (x.abs() <= toy.extent).all()
    assert toy.log_prob(x[:2000]).isfinite().all()


def test_quadrature_agrees_with_the_bessel_form_and_draws_are_the_same():
    def circles(u):
        angle = 2 * math.pi * u
        return torch.stack([rho * torch.stack([angle.cos(), angle.sin()], -1) for rho in (0.8, 1.6, 3.2)])

    curves, rings = NoisyCurves(circles, std=0.1), Rings((0.8, 1.6, 3.2), std=0.1)
    x = torch.randn(500, 2, generator=generator(), dtype=torch.float64) * 2
    torch.testing.assert_close(curves.log_prob(x), rings.log_prob(x), atol=1e-4, rtol=0)
    assert torch.equal(curves.sample(100, generator()), rings.sample(100, generator()))


def test_quadrature_is_accurate_at_the_ends_of_a_curve():
    segment = NoisyCurves(lambda u: torch.stack([4 * u - 2, 0 * u], -1)[None], std=0.1)
    x = torch.tensor([[-2.5, 0.0], [-2.0, 0.1], [-1.97, 0.0], [0.0, 0.3], [2.3, -0.1]], dtype=torch.float64)
    along = stats.norm.cdf((x[:, 0] + 2) / 0.1) - stats.norm.cdf((x[:, 0] - 2) / 0.1)
    exact = torch.from_numpy(along).log() - math.log(4) + torch.from_numpy(stats.norm.logpdf(x[:, 1], scale=0.1))
    torch.testing.assert_close(segment.log_prob(x), exact, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", sorted(EXPECTED - {"checkerboard"}))
def test_a_toy_is_an_energy(name):
    toy = TOYS[name]()
    x = toy.sample(20, generator())
    torch.testing.assert_close(toy(x), -toy.log_prob(x))
    double = TOYS[name]().double()
    assert double.sample(3, generator()).dtype == torch.float64


def test_modes():
    shapes = {name: toy.modes.shape for name, toy in ((n, TOYS[n]()) for n in TOYS) if toy.modes is not None}
    assert shapes == {"8gaussians": (8, 2), "pinwheel": (5, 2), "checkerboard": (8, 2)}


def test_checkerboard_is_zero_on_light_squares_and_off_the_board():
    x = torch.tensor([[-3.0, -3.0], [-3.0, -1.0], [5.0, 1.0], [3.9, 3.9]])
    log_prob = TOYS["checkerboard"]().log_prob(x)
    torch.testing.assert_close(log_prob, torch.tensor([-math.log(32), -math.inf, -math.inf, -math.log(32)]))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_draws_depend_on_the_generator_alone(name):
    toy, state = TOYS[name](), torch.get_rng_state()
    first = toy.sample(10, generator(3))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    assert torch.equal(first, toy.sample(10, generator(3)))
    torch.set_rng_state(state)


@pytest.mark.parametrize("name", sorted(EXPECTED - {"checkerboard"}))
def test_log_prob_is_differentiable_and_keeps_float64(name):
    x = torch.zeros(3, 2, dtype=torch.float64)
    x[1:] = TOYS[name]().sample(2, generator())
    x.requires_grad_()
    log_prob = TOYS[name]().log_prob(x)
    assert log_prob.dtype == torch.float64
    assert torch.autograd.grad(log_prob.sum(), x)[0].isfinite().all()
