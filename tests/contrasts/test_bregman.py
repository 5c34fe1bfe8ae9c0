import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adance.configurable import build, describe
from adance.contrasts import (
    KL,
    Bregman,
    Contrast,
    Custom,
    Hellinger,
    ItakuraSaito,
    LeastSquares,
    Logistic,
    Mahalanobis,
    Power,
    named_bregman,
)
from adance.errors import InputError
from adance.registry import trust

# Ψ(u) as the textbooks write it, next to the contrast that should equal it.
PSI = {
    "logistic": (Logistic(3), lambda u: u * u.log() - (3 + u) * (3 + u).log()),
    "kl": (KL(), lambda u: u * u.log() - u),
    "least squares": (LeastSquares(), lambda u: u**2 / 2),
    "mahalanobis": (Mahalanobis(2.5), lambda u: 2.5 * u**2 / 2),
    "itakura-saito": (ItakuraSaito(), lambda u: -u.log()),
    "hellinger": (Hellinger(), lambda u: -4 * u.sqrt()),
    "power 1/2": (Power(0.5), lambda u: u**1.5 / (1.5 * 0.5)),
    "power 2": (Power(2.0), lambda u: u**3 / 6),
    "power -2": (Power(-2.0), lambda u: u**-1 / 2),
    "custom": (Custom(lambda u: u**2 - u.sqrt()), lambda u: u**2 - u.sqrt()),
}
ALL = pytest.mark.parametrize(("contrast", "psi"), PSI.values(), ids=PSI.keys())


def double(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def derivative(f, x):
    return torch.autograd.grad(f(x).sum(), x, create_graph=True)[0]


@ALL
@settings(deadline=None, max_examples=25)
@given(r=st.floats(-6, 6))
def test_s1_and_s0_come_from_psi_up_to_constants(contrast, psi, r):
    r = double([r, 0.0])
    u = r.detach().exp().requires_grad_()
    s1 = derivative(psi, u)
    s0 = u * s1 - psi(u)
    for found, right in ((contrast.s1(r), s1), (contrast.s0(r), s0)):
        torch.testing.assert_close(found[0] - found[1], right[0] - right[1], rtol=1e-9, atol=1e-9)


@ALL
@settings(deadline=None, max_examples=25)
@given(r=st.floats(-8, 8))
def test_slopes_have_the_ratio_u_and_s1_rises(contrast, psi, r):
    r = double([r])
    one, zero = derivative(contrast.s1, r), derivative(contrast.s0, r)
    assert one > 0
    torch.testing.assert_close(zero / one, r.exp(), rtol=1e-9, atol=0)


@ALL
def test_curvature_is_the_second_derivative_at_one(contrast, psi):
    right = derivative(lambda u: derivative(psi, u), double([1.0])).item()
    assert contrast.curvature == pytest.approx(right, rel=1e-9)
    assert derivative(contrast.s1, double([0.0])).item() == pytest.approx(right, rel=1e-9)
    assert derivative(contrast.s0, double([0.0])).item() == pytest.approx(right, rel=1e-9)


def test_losses_are_the_textbooks_(generator):
    r = torch.randn(40, 5, generator=generator, dtype=torch.float64)
    data, noise = r[:, 0], r[:, 1:]
    u, v = data.exp(), noise.exp()
    right = {
        KL(): v.mean() - data.mean(),
        LeastSquares(): (v**2).mean() / 2 - u.mean(),
        Mahalanobis(3.0): 3 * ((v**2).mean() / 2 - u.mean()),
        ItakuraSaito(): (v.log() - 1).mean() + (1 / u).mean(),
        Hellinger(): 2 * v.sqrt().mean() + 2 * (1 / u.sqrt()).mean(),
        Logistic(): (1 + v).log().mean() - (u / (1 + u)).log().mean(),
    }
    for contrast, value in right.items():
        torch.testing.assert_close(contrast(data, noise), value, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("beta", "named"), [(1.0, LeastSquares()), (0.0, KL()), (-0.5, Hellinger()), (-1.0, ItakuraSaito())]
)
def test_powers_and_their_limits_are_the_named_ones_up_to_a_constant(beta, named):
    r = double([-3.0, -0.5, 0.0, 2.0])
    for near, rtol in ((beta, 1e-12), (beta + 1e-7, 1e-5)):
        power = Power(near)
        for f, g in ((power.s0, named.s0), (power.s1, named.s1)):
            torch.testing.assert_close(derivative(f, r), derivative(g, r), rtol=rtol, atol=0)
            torch.testing.assert_close(f(r) - f(r)[2], g(r) - g(r)[2], rtol=10 * rtol, atol=10 * rtol)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@ALL
def test_extreme_ratios_are_finite_and_still_push(contrast, psi, dtype):
    r = torch.linspace(-200, 200, 401, dtype=dtype, requires_grad=True)
    for s in (contrast.s0, contrast.s1):
        values = s(r)
        slope = derivative(lambda x, s=s: s(x), r)
        assert values.isfinite().all()
        assert slope.isfinite().all()
        assert (values.diff() >= 0).all()
        if not isinstance(contrast, Logistic):
            growing = slope[r > 10] if s is contrast.s0 else slope[r < -10]
            assert (growing > 0).all() or contrast.grows != (True, True)
    loss = contrast(r, r[:, None])
    assert loss.isfinite()
    assert torch.autograd.grad(loss, r)[0].isfinite().all()


def test_beyond_the_bound_the_slopes_are_those_at_the_bound():
    contrast = LeastSquares(max_ratio=100.0)
    r = double([math.log(100.0) + 0.001, 8.0, 50.0])
    torch.testing.assert_close(derivative(contrast.s1, r), torch.full_like(r, 100.0))
    torch.testing.assert_close(derivative(contrast.s0, r), torch.full_like(r, 100.0**2))
    edge = double([math.log(100.0)])
    torch.testing.assert_close(contrast.s0(r[:1]) - contrast.s0(edge), (100.0**2 * (r[:1] - edge)))
    # On the side where nothing grows nothing is bounded.
    low = double([-50.0])
    torch.testing.assert_close(contrast.s1(low), low.exp())


def test_an_own_psi_is_as_good_as_a_named_one(generator):
    r = torch.randn(30, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    for named, psi in ((KL(), lambda u: u * u.log() - u), (LeastSquares(), lambda u: u**2 / 2)):
        own = Custom(psi)
        losses = [c(r[:, 0], r[:, 1:]) for c in (named, own)]
        grads = [torch.autograd.grad(loss, r)[0] for loss in losses]
        torch.testing.assert_close(losses[0], losses[1], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(grads[0], grads[1], rtol=1e-10, atol=1e-14)
    with torch.no_grad():
        torch.testing.assert_close(own.s0(r), named.s0(r))


@pytest.mark.parametrize("psi", [lambda u: u, lambda u: -(u**2), lambda u: u.sin(), lambda u: (u - 1) ** 3])
def test_a_psi_that_is_not_convex_is_refused(psi):
    with pytest.raises(InputError, match="convex"):
        Custom(psi)


def test_an_own_psi_must_be_elementwise():
    with pytest.raises(InputError, match="elementwise"):
        Custom(lambda u: (u**2).sum())


def test_an_own_psi_goes_through_a_config_by_its_path():
    trust("torch")
    for psi in (torch.square, "torch.square"):
        described = {"class_path": "adance.contrasts.Custom", "init_args": {"psi": "torch.square"}}
        made = Custom(psi)
        if isinstance(psi, str):
            assert describe(made)["init_args"]["psi"] == "torch.square"
        again = build(described, Contrast)
        assert again.s1(torch.zeros(1)).item() == made.s1(torch.zeros(1)).item() == 2
    with pytest.raises(InputError, match="function"):
        describe(Custom(lambda u: u**2))
    for path in ("torch.no_such_function", "nothing", "torch.pi"):
        with pytest.raises(InputError, match=path):
            Custom(path)


@pytest.mark.parametrize("contrast", [KL, LeastSquares, Hellinger])
def test_the_correction_changes_nothing_where_it_is_not_needed(contrast, generator):
    r = 0.3 * torch.randn(500, 2, generator=generator, dtype=torch.float64)
    plain, corrected = contrast(), contrast(ratio_bound=20.0)
    torch.testing.assert_close(corrected(r[:, 0], r[:, 1:]), plain(r[:, 0], r[:, 1:]))


@pytest.mark.parametrize("contrast", [KL(ratio_bound=10.0), LeastSquares(ratio_bound=10.0), Power(0.3, 1, 1e4, 10.0)])
def test_the_corrected_loss_is_bounded_below(contrast):
    # A net that overfits: r is large on the data and stays 0 on the noise.
    plain = type(contrast)(**{**contrast.init_args, "ratio_bound": None})
    noise = torch.zeros(10, 1, dtype=torch.float64)
    heights = torch.linspace(0, 30, 301, dtype=torch.float64)
    losses = {c: torch.stack([c(h.expand(10), noise) for h in heights]) for c in (plain, contrast)}
    assert (losses[plain].diff() < 0).all()
    lowest = losses[contrast].argmin()
    # The part that is left, C·S0 − S1, has its minimum at u = 1/C = 10.
    assert heights[lowest].item() == pytest.approx(math.log(10), abs=0.1)
    assert (losses[contrast][lowest:].diff() > 0).all()


def test_the_correction_needs_a_lower_bound_and_a_sensible_one():
    for make in (
        lambda: ItakuraSaito(ratio_bound=5.0),
        lambda: Power(-1.5, ratio_bound=5.0),
        lambda: KL(ratio_bound=0.5),
        lambda: KL(max_ratio=10.0, ratio_bound=10.0),
        lambda: KL(max_ratio=1.0),
        lambda: KL(0),
        lambda: Power(20.0),
        lambda: Mahalanobis(0.0),
        lambda: named_bregman("sine", 1),
    ):
        with pytest.raises(InputError):
            make()


def test_names_are_of_the_contrasts():
    assert isinstance(named_bregman("kl", 4), KL)
    assert named_bregman("logistic", 4).noises == 4
    own = Custom(lambda u: u**2)
    assert named_bregman(own, 4) is own
    for name in ("mahalanobis", "least_squares", "itakura_saito", "hellinger"):
        assert isinstance(named_bregman(name, 1), Bregman)


def test_variance_of_the_estimator_with_known_class_probabilities_is_less(generator):
    # (2.12) draws the class of each sample; (2.13) takes as many of each as are expected. Both estimate the same.
    n, repeats = 64, 4000
    for nu in (1, 3):
        r = -0.5 + torch.randn(repeats, n, 2, generator=generator, dtype=torch.float64)
        r[..., 1] -= 1.0  # noise samples have lower ratios
        datum = torch.rand(repeats, n, generator=generator) < 1 / (1 + nu)
        # per sample −log p(π|x): of data softplus(log ν − r), of noise softplus(r − log ν)
        of_data = -Logistic(nu).s1(r[..., 0])
        of_noise = Logistic(nu).s0(r[..., 1]) / nu
        drawn = torch.where(datum, of_data, of_noise).mean(1)
        # n samples in all: n/(1 + ν) data
        m = n // (1 + nu)
        known = torch.stack([Logistic(nu)(row[:m, 0], row[m:, 1:]) for row in r[:1500]]) / (1 + nu)
        standard_error = (drawn.var() / repeats + known.var() / 1500).sqrt()
        assert abs(drawn.mean() - known.mean()) < 5 * standard_error
        # The variance of a variance estimate from k normal values is 2/k of its square: five of them.
        assert known.var() * (1 + 5 * math.sqrt(2 / 1500)) < drawn.var() * (1 - 5 * math.sqrt(2 / repeats))


@pytest.mark.parametrize("contrast", [KL(), LeastSquares(), Mahalanobis(2.0), ItakuraSaito(), Hellinger(), Power(0.3)])
def test_the_fitted_constant_is_where_the_loss_is_flat(contrast, generator):
    data = torch.randn(50, generator=generator, dtype=torch.float64) + 1
    noise = torch.randn(50, 3, generator=generator, dtype=torch.float64) - 1
    c = contrast.log_z_offset(data, noise).requires_grad_()
    assert abs(torch.autograd.grad(contrast(data - c, noise - c), c)[0].item()) < 1e-12
    zeros = torch.zeros(4, dtype=torch.float64)
    assert contrast.log_z_offset(zeros, zeros[:, None]) == 0


def test_the_constant_of_a_psi_of_one_s_own_is_the_ratio_s_mean_on_noise(generator):
    noise = torch.randn(50, 3, generator=generator, dtype=torch.float64)
    c = Custom(lambda u: u.square()).log_z_offset(noise[:, 0], noise)
    assert c.exp() == pytest.approx(float(noise.exp().mean()))
