import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adance.contrasts import Bregman, Logistic
from adance.errors import InputError

NU = st.integers(1, 10_000)
R = st.floats(-30, 30)


def double(value):
    return torch.tensor([value], dtype=torch.float64, requires_grad=True)


def psi(u, nu):
    """Ψ(u) = u log u − (ν + u) log(ν + u)."""
    return u * u.log() - (nu + u) * (nu + u).log()


def derivative(f, x):
    return torch.autograd.grad(f(x).sum(), x, create_graph=True)[0]


@settings(deadline=None, max_examples=40)
@given(NU, st.floats(-8, 8))
def test_s1_and_s0_come_from_psi(nu, r):
    contrast, r = Logistic(nu), double(r)
    u = r.detach().exp().requires_grad_()
    slope = derivative(lambda u: psi(u, nu), u)
    torch.testing.assert_close(contrast.s1(r), slope, rtol=1e-9, atol=1e-9)
    # S0 = uΨ' − Ψ up to a constant, ν log ν here.
    s0 = u * slope - psi(u, nu) - nu * math.log(nu)
    torch.testing.assert_close(contrast.s0(r), s0, rtol=1e-6, atol=1e-6)


@settings(deadline=None, max_examples=40)
@given(NU, R)
def test_slopes_have_the_ratio_u(nu, r):
    contrast, r = Logistic(nu), double(r)
    one, zero = derivative(contrast.s1, r), derivative(contrast.s0, r)
    assert one > 0
    # torch's softplus is the identity beyond 20, where its slope is 1 to within e⁻²⁰ = 2e-9.
    torch.testing.assert_close(zero / one, r.exp(), rtol=3e-9, atol=0)


@settings(deadline=None, max_examples=20)
@given(NU)
def test_curvature_is_the_second_derivative_of_psi(nu):
    u = torch.ones(1, dtype=torch.float64, requires_grad=True)
    second = derivative(lambda u: derivative(lambda u: psi(u, nu), u), u)
    assert second.item() == pytest.approx(Logistic(nu).curvature, rel=1e-9)
    r = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    assert derivative(Logistic(nu).s1, r).item() == pytest.approx(Logistic(nu).curvature, rel=1e-12)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 50), st.integers(1, 6))
def test_loss_is_the_classifier_s_cross_entropy(nu, n):
    r = torch.randn(n, 1 + nu, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    # The probability that x is a datum, one of 1 + ν: u/(ν + u).
    datum = r.exp() / (nu + r.exp())
    right = -datum[:, 0].log().mean() - nu * (1 - datum[:, 1:]).log().mean()
    torch.testing.assert_close(Logistic(nu)(r[:, 0], r[:, 1:]), right)


def test_loss_at_a_ratio_of_one():
    zero = torch.zeros(3)
    assert Logistic()(zero, zero[:, None]).item() == pytest.approx(2 * math.log(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_ratios_with_many_noises_are_finite(dtype):
    contrast = Logistic(10_000)
    r = torch.linspace(-200, 200, 401, dtype=dtype, requires_grad=True)
    loss = contrast(r, r[:, None])
    (gradient,) = torch.autograd.grad(loss, r)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    # Beyond log ν the loss is linear: slopes of S1 and S0 are ν/(ν + u) and uν/(ν + u).
    u = r.detach().double().exp()
    right = (10_000 * u / (10_000 + u) - 10_000 / (10_000 + u)) / 401
    torch.testing.assert_close(gradient.double(), right, rtol=1e-4, atol=1e-8)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 20), st.lists(st.floats(-5, 5), min_size=1, max_size=5))
def test_hinge_is_the_limit_of_small_temperature(nu, d):
    d, T = torch.tensor(d, dtype=torch.float64), 1e-6
    contrast = Logistic(nu)
    # T·ν·softplus(d/T − log ν) is within T·ν·(log 2 + log ν) of ν·max(d, 0).
    gap = T * contrast(d / T, (d / T)[:, None]) - contrast.zero_temperature_loss(d, d[:, None])
    assert abs(gap) < T * (nu + 1) * (1 + math.log(nu))


def test_hinge_slope_at_zero_is_a_half():
    data, noise = torch.zeros(4, requires_grad=True), torch.zeros(4, 1, requires_grad=True)
    Logistic().zero_temperature_loss(data, noise).backward()
    assert data.grad.tolist() == [-0.125] * 4
    assert noise.grad.flatten().tolist() == [0.125] * 4


@pytest.mark.parametrize("nu", [1, 2, 7])
def test_hinge_slopes_at_zero_are_the_contrast_s(nu):
    contrast, grads = Logistic(nu), []
    for loss in (contrast, contrast.zero_temperature_loss):
        data = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        noise = torch.zeros(2, nu, dtype=torch.float64, requires_grad=True)
        loss(data, noise).backward()
        grads.append((data.grad, noise.grad))
    torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.parametrize("nu", [1, 3])
def test_hinge_slopes_away_from_zero(nu):
    data = torch.tensor([-2.0, 2.0], requires_grad=True)
    noise = torch.tensor([[-2.0], [2.0]], requires_grad=True)
    Logistic(nu).zero_temperature_loss(data, noise).backward()
    torch.testing.assert_close(data.grad, torch.tensor([-0.5, 0.0]))
    torch.testing.assert_close(noise.grad, torch.tensor([[0.0], [nu / 2]]))


def test_noises_below_one_are_refused():
    with pytest.raises(InputError, match="noises=0"):
        Logistic(0)


def test_a_contrast_without_a_limit_says_so():
    class Square(Bregman):
        curvature = 1.0

        def s0(self, r):
            return (2 * r).exp() / 2

        def s1(self, r):
            return r.exp()

    r = torch.zeros(1)
    assert Square()(r, r[:, None]).item() == -0.5
    with pytest.raises(InputError, match="Square"):
        Square().zero_temperature_loss(r, r[:, None])


@pytest.mark.parametrize("nu", [1, 4])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_the_fitted_constant_is_that_of_the_least_loss(nu, scale):
    generator = torch.Generator().manual_seed(nu)
    contrast = Logistic(nu)
    data, noise = (
        scale * torch.randn(n, generator=generator, dtype=torch.float64) + shift
        for n, shift in ((50, 3), (50 * nu, -1))
    )
    noise = noise.view(50, nu)
    c = contrast.log_z_offset(data, noise).requires_grad_()
    slope = torch.autograd.grad(contrast(data - c, noise - c), c)[0]
    assert abs(slope.item()) < 1e-5
    least = contrast(data - c, noise - c)
    for step in (-0.01, 0.01):
        assert contrast(data - c - step * scale, noise - c - step * scale) > least
    torch.testing.assert_close(contrast.log_z_offset(data + 5, noise + 5), c.detach() + 5, rtol=0, atol=1e-5 * scale)


def test_equal_ratios_are_their_own_constant():
    for nu in (1, 3):
        zeros = torch.zeros(4), torch.zeros(4, nu)
        assert Logistic(nu).log_z_offset(*zeros) == 0
