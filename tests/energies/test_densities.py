import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from adance import InputError
from adance.energies import (
    Banana,
    Density,
    DoubleWell,
    FullGaussian,
    Funnel,
    GaussianMixture,
    Rings,
    energy_and_gradient,
)

COVARIANCE = torch.tensor([[2.0, 0.9], [0.9, 0.8]], dtype=torch.float64)
MEANS = torch.tensor([[-2.0, 0.0], [1.0, 2.0], [2.0, -1.0]], dtype=torch.float64)
COVARIANCES = torch.stack([COVARIANCE, 0.3 * torch.eye(2, dtype=torch.float64), COVARIANCE.inverse()])

# Each with a box of the plane that holds all but 1e-9 of it.
PLANE = {
    "full": (FullGaussian(MEANS[1], COVARIANCE), (-9, 11, -5, 9)),
    "mixture": (GaussianMixture(MEANS, COVARIANCES, [1.0, 2.0, 0.5]), (-12, 13, -13, 11)),
    "shared": (GaussianMixture(MEANS, COVARIANCE), (-12, 13, -8, 10)),
    "circle": (GaussianMixture.on_circle(8, 4.0, 0.5).double(), (-8, 8, -8, 8)),
    "rings": (Rings((0.5, 2.0), 0.2, (1.0, 3.0)).double(), (-4, 4, -4, 4)),
    "banana": (Banana(2, 0.5, 0.8, 0.7, 0.4).double(), (-5, 6, -3, 30)),
    "well": (DoubleWell(2, 3.0, 1.5, 0.4).double(), (-5, 5, -7, 7)),
}


@pytest.fixture(params=PLANE)
def planar(request):
    return PLANE[request.param]


def test_integrates_to_one(planar):
    # The midpoint rule: its error on these smooth laws is far below the tolerance.
    density, (left, right, low, high) = planar
    n = 600
    u = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    points = torch.cartesian_prod(left + (right - left) * u, low + (high - low) * u)
    area = (right - left) * (high - low) / n**2
    assert float(density.log_prob(points).exp().sum() * area) == pytest.approx(1, abs=2e-6)


def test_energy_is_minus_log_density_and_its_gradient_is_finite(planar, generator):
    density, _ = planar
    x = torch.cat([density.sample(50, generator), torch.zeros(1, 2), 100 * torch.ones(1, 2)])
    torch.testing.assert_close(density(x), -density.log_prob(x))
    values, gradient = energy_and_gradient(density, x)
    assert values.isfinite().all()
    assert gradient.isfinite().all()


def test_samples_follow_the_density(planar, generator):
    # χ² over a 24 × 24 board, cells with fewer than 10 expected draws put together; level 1e-4, seed fixed.
    density, (left, right, low, high) = planar
    n, cells, fine = 40_000, 24, 20
    x = density.sample(n, generator)
    assert x.shape == (n, 2)
    u = (torch.arange(cells * fine, dtype=torch.float64) + 0.5) / (cells * fine)
    points = torch.cartesian_prod(left + (right - left) * u, low + (high - low) * u)
    mass = density.log_prob(points).exp().view(cells, fine, cells, fine).sum((1, 3))
    expected = (n * mass / mass.sum()).flatten()
    place = torch.stack([(x[:, 0] - left) / (right - left), (x[:, 1] - low) / (high - low)]).mul(cells).long()
    seen = torch.bincount((place[0] * cells + place[1]).clamp(0, cells**2 - 1), minlength=cells**2).double()
    rare = expected < 10
    expected = torch.cat([expected[~rare], expected[rare].sum()[None] + 1e-9])
    seen = torch.cat([seen[~rare], seen[rare].sum()[None]])
    statistic = float(((seen - expected).square() / expected).sum())
    assert stats.chi2.sf(statistic, len(expected) - 1) > 1e-4


@pytest.mark.parametrize(
    "density",
    [*(density for density, _ in PLANE.values()), Funnel(5), Banana(4), DoubleWell(1), Rings()],
    ids=lambda density: type(density).__name__,
)
def test_every_density_draws_in_its_dtype_and_leaves_the_global_generator(density, generator):
    before = torch.get_rng_state()
    assert isinstance(density, Density)
    for n in (0, 3):
        x = density.sample(n, generator)
        assert len(x) == n
        assert x.dtype == next(density.buffers()).dtype
        assert density(x).shape == (n,)
    again = density.sample(3, torch.Generator().manual_seed(5))
    assert torch.equal(again, density.sample(3, torch.Generator().manual_seed(5)))
    assert torch.equal(torch.get_rng_state(), before)


def test_full_gaussian_is_torch_s(generator):
    mean, root = torch.randn(5, generator=generator).double(), torch.randn(5, 5, generator=generator).double()
    covariance = root @ root.T + torch.eye(5)
    right = torch.distributions.MultivariateNormal(mean, covariance)
    x = torch.randn(7, 5, generator=generator).double()
    density = FullGaussian(mean, covariance)
    torch.testing.assert_close(density.log_prob(x), right.log_prob(x))
    torch.testing.assert_close(energy_and_gradient(density, x)[1], (x - mean) @ covariance.inverse())
    draws = density.sample(100_000, generator)
    # Five standard errors of a covariance: √((Σᵢⱼ² + ΣᵢᵢΣⱼⱼ)/n).
    error = 5 * ((covariance.square() + torch.outer(covariance.diag(), covariance.diag())) / 1e5).sqrt()
    assert ((torch.cov(draws.T) - covariance).abs() < error).all()


def test_mixture_of_one_is_a_gaussian_and_weights_are_shares(generator):
    x = MEANS + 0.3
    one = GaussianMixture(MEANS[:1], COVARIANCE)
    torch.testing.assert_close(one.log_prob(x), FullGaussian(MEANS[0], COVARIANCE).log_prob(x))
    far = GaussianMixture(torch.tensor([[-50.0], [50.0]]), torch.eye(1), [3.0, 1.0])
    share = (far.sample(20_000, generator) < 0).float().mean()
    assert abs(share - 0.75) < 5 * math.sqrt(0.75 * 0.25 / 20_000)


def test_funnel_is_normal_given_its_neck(generator):
    density = Funnel(6, 2.0).double()
    x = density.sample(20_000, generator)
    assert stats.kstest(x[:, 0] / 2, "norm").pvalue > 1e-4
    assert stats.kstest((x[:, 1:] * (-x[:, :1] / 2).exp()).flatten(), "norm").pvalue > 1e-4
    v = torch.distributions.Normal(0.0, 2.0).log_prob(x[:, 0])
    rest = torch.distributions.Normal(0.0, (x[:, :1] / 2).exp()).log_prob(x[:, 1:]).sum(1)
    torch.testing.assert_close(density.log_prob(x), v + rest)


def test_banana_is_rosenbrock_s_function():
    x = torch.randn(20, 2, dtype=torch.float64)
    rosenbrock = (1 - x[:, 0]).square() / 20 + 5 * (x[:, 1] - x[:, 0].square()).square()
    difference = Banana(2, 1.0, math.sqrt(10), 1.0, math.sqrt(0.1)).double()(x) - rosenbrock
    torch.testing.assert_close(difference, difference.mean().expand(20))


@pytest.mark.parametrize(("barrier", "separation", "tilt"), [(4.0, 2.0, 0.0), (0.1, 0.3, 30.0), (20.0, 5.0, -0.5)])
def test_double_well_by_adaptive_quadrature(barrier, separation, tilt, generator):
    well = DoubleWell(1, barrier, separation, tilt).double()

    def density(s):
        return well.log_prob(torch.tensor([[s]], dtype=torch.float64)).exp().item()

    reach = 8 * separation
    assert integrate.quad(density, -reach, reach, limit=500, points=(-separation, 0, separation))[0] == pytest.approx(1)
    grid = torch.linspace(-reach, reach, 20_001, dtype=torch.float64)
    mass = torch.cat([torch.zeros(1), torch.cumulative_trapezoid(well.log_prob(grid[:, None]).exp(), grid)])
    draws = well.sample(20_000, generator)[:, 0]
    assert stats.kstest(draws.numpy(), lambda x: np.interp(x, grid, mass)).pvalue > 1e-4


def test_ring_radii_and_angles(generator):
    x = Rings((1.0,), 0.6).double().sample(20_000, generator)
    angles = (torch.atan2(x[:, 1], x[:, 0]) + math.pi) / (2 * math.pi)
    assert stats.kstest(angles, "uniform").pvalue > 1e-4

    assert stats.kstest(x.norm(dim=1).numpy(), stats.rice(1 / 0.6, scale=0.6).cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FullGaussian(torch.zeros(2), torch.eye(3)), "covariance"),
        (lambda: FullGaussian(torch.zeros(2), torch.tensor([[1.0, 0.5], [0.0, 1.0]])), "symmetric"),
        (lambda: FullGaussian(torch.zeros(2), -torch.eye(2)), "positive definite"),
        (lambda: GaussianMixture(torch.zeros(2), torch.eye(2)), "means"),
        (lambda: GaussianMixture(torch.zeros(3, 2), torch.eye(3)), "covariances"),
        (lambda: GaussianMixture(torch.zeros(3, 2), torch.eye(2), [1, 1]), "3 positive weights"),
        (lambda: GaussianMixture(torch.zeros(2, 2), torch.eye(2), [1, 0]), "positive weights"),
        (lambda: Rings(()), "radii"),
        (lambda: Rings((1.0, -1.0)), "radii"),
        (lambda: Rings(std=0), "std"),
        (lambda: Rings(weights=(1.0,)), "weights"),
        (lambda: Funnel(1), "Funnel needs at least 2"),
        (lambda: Funnel(scale=0), "scale"),
        (lambda: Banana(1), "Banana needs at least 2"),
        (lambda: Banana(width=-1), "width"),
        (lambda: DoubleWell(0), "at least 1"),
        (lambda: DoubleWell(barrier=math.nan), "barrier"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message) as error:
        make()
    assert "\n" not in str(error.value)
