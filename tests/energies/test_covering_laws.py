import math

import pytest
import torch

from adance.energies import Blend, Gaussian, KernelDensity, StudentT
from adance.errors import InputError
from adance.noises import FittedNoise, Flow


def seed(number=1):
    return torch.Generator().manual_seed(number)


def test_student_s_density_is_scipy_s():
    stats = pytest.importorskip("scipy.stats")
    location, scale = torch.tensor([1.0, -2.0]).double(), torch.tensor([[2.0, 0.6], [0.6, 0.5]]).double()
    x = 3 * torch.randn(50, 2, generator=seed(), dtype=torch.float64)
    expected = stats.multivariate_t(location, scale, df=4).logpdf(x.numpy())
    torch.testing.assert_close(StudentT(location, scale).log_prob(x), torch.from_numpy(expected))


def test_a_fitted_student_has_the_data_s_covariance_and_heavier_tails():
    data = torch.randn(5000, 2, generator=seed()) * torch.tensor([1.0, 3.0])
    law = StudentT.fitted(data)
    x = law.sample(200_000, seed(2))
    inside = (x[:, 0] - law.location[0]).abs() < 0.5
    # P(|x₀ − μ| < ½) of Student's t with ν = 4: t/√(4 + t²)·(1 + 2/(4 + t²)) at t = ½/scale
    t = 0.5 / float(law.factor[0, 0])
    expected = t / math.sqrt(4 + t**2) * (1 + 2 / (4 + t**2))
    assert abs(float(inside.float().mean()) - expected) < 4 * math.sqrt(expected * (1 - expected) / len(x))
    torch.testing.assert_close(law.factor @ law.factor.T * 2, data.T.cov(), rtol=0.01, atol=0.01)
    far = torch.tensor([[8.0, 0.0]])
    assert law.log_prob(far) > Gaussian.fitted(data).log_prob(far) + 10


def test_one_kernel_is_a_normal_law():
    factor = torch.tensor([[1.0, 0.0], [0.5, 2.0]]).double()
    center = torch.tensor([[1.0, 2.0]]).double()
    one = torch.ones(1).double()
    density = KernelDensity(center, factor, 0.5 * one, one)
    normal = torch.distributions.MultivariateNormal(center[0], scale_tril=0.5 * factor)
    x = torch.randn(40, 2, generator=seed(), dtype=torch.float64)
    torch.testing.assert_close(density.log_prob(x), normal.log_prob(x))


def test_a_kernel_density_is_the_mixture_of_its_kernels():
    centers, factor = torch.randn(7, 2, generator=seed()).double(), torch.eye(2).double()
    h, w = torch.tensor([0.2, 1.0]).double(), torch.tensor([0.3, 0.7]).double()
    density = KernelDensity(centers, factor, h, w)
    x = torch.randn(30, 2, generator=seed(2)).double()
    parts = [
        weight / 7 * torch.distributions.Normal(center, bandwidth).log_prob(x).sum(1).exp()
        for center in centers
        for bandwidth, weight in zip(h, w, strict=True)
    ]
    torch.testing.assert_close(density.log_prob(x), sum(parts).log())


def test_bandwidths_are_weighted_by_left_out_rows():
    # four tight clumps far apart: Silverman's bandwidth, of the whole set, is far too wide
    data = 0.05 * torch.randn(1000, 2, generator=seed()) + torch.randint(2, (1000, 2), generator=seed(2)) * 10
    density = KernelDensity.fitted(data, seed(3))
    weights = density.log_weights.exp()
    torch.testing.assert_close(weights.sum(), torch.ones(()))
    assert weights[0] > 0.9  # the narrowest, about 0.05
    held = 0.05 * torch.randn(1000, 2, generator=seed(4))
    entropy = 1 + math.log(2 * math.pi) + 2 * math.log(0.05) + math.log(4)
    assert -density.log_prob(held).mean() < entropy + 0.5


def test_a_blend_is_the_mean_density():
    one, two = Gaussian(torch.zeros(1), torch.ones(1)), Gaussian(torch.full((1,), 6.0), torch.ones(1))
    blend = Blend([one, two])
    x = torch.linspace(-3, 9, 30)[:, None]
    torch.testing.assert_close(blend.log_prob(x).exp(), (one.log_prob(x).exp() + two.log_prob(x).exp()) / 2)
    share = (blend.sample(10_000, seed()) > 3).float().mean()
    assert abs(share - 0.5) < 4 * 0.5 / math.sqrt(10_000)
    unequal = Blend([one, two], torch.tensor([0.9, 0.1]))
    exact = 0.9 * one.log_prob(x).exp() + 0.1 * two.log_prob(x).exp()
    torch.testing.assert_close(unequal.log_prob(x).exp(), exact)
    assert abs((unequal.sample(10_000, seed()) > 3).float().mean() - 0.1) < 0.015  # 5 standard errors
    with pytest.raises(InputError, match="at least one"):
        Blend([])


@pytest.mark.parametrize("kind", ["student", "kde", "cover"])
def test_they_are_for_vectors(kind):
    with pytest.raises(InputError, match="for vectors"):
        FittedNoise(kind).build(torch.zeros(5, 1, 2, 2))


@pytest.mark.parametrize("kind", ["spline", "affine"])
def test_a_flow_starts_as_the_gaussian_and_is_never_worse(kind):
    data = torch.randn(1000, 1, generator=seed())
    x = torch.randn(200, 1, generator=seed(2))
    expected = Gaussian.fitted(data).log_prob(x)
    torch.testing.assert_close(Flow(kind, fit_steps=0).fit(data, seed()).log_prob(x), expected, rtol=1e-4, atol=1e-5)
    # these data are normal: nothing to learn
    torch.testing.assert_close(
        Flow(kind, hidden=(8,), fit_steps=100).fit(data, seed()).log_prob(x).mean(), expected.mean(), rtol=0, atol=0.02
    )
