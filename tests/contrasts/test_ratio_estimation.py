"""Contrasts of neural ratio estimation: the losses of the papers, and the ratio that minimizes them."""

import itertools
import math

import pytest
import torch

from adance.contrasts import Balanced, Logistic, RankingOrNone
from adance.errors import InputError

P = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
Q = P.flip(0)


def expected(contrast, r):
    """The mean loss of log-ratios ``r`` ``(4,)``, over every datum from P and every K noise samples from Q."""
    K, total = contrast.noises, torch.zeros(()).double()
    for datum, *noise in itertools.product(range(4), repeat=1 + K):
        weight = P[datum] * Q[noise].prod()
        total = total + weight * contrast(r[[datum]], r[noise][None])
    return total


@pytest.mark.parametrize("contrast", [RankingOrNone(1), RankingOrNone(3), RankingOrNone(2, odds=3.0)])
def test_the_ratio_itself_minimizes_the_loss_and_no_constant_cancels(contrast):
    r = (P / Q).log().requires_grad_()
    (slope,) = torch.autograd.grad(expected(contrast, r), r)
    torch.testing.assert_close(slope, torch.zeros(4).double(), rtol=0, atol=1e-12)
    least, right = expected(contrast, r), r.detach()
    for other in (right + 0.1, right - 0.1, right + torch.tensor([0.1, 0, 0, -0.1])):
        assert expected(contrast, other) > least
    assert not contrast.ignores_constant


@pytest.mark.parametrize("odds", [0.5, 1.0, 4.0])
def test_the_loss_is_that_of_the_classes(odds, generator):
    r = torch.randn(1, 4, generator=generator).double()
    prior = odds / 3
    none = -math.log(1 / (1 + prior * float(r[0, 1:].exp().sum())))
    among = torch.cat([r[:, :1], r[:, 2:]], 1).exp()
    one = -math.log(prior * float(r[0, 0].exp()) / (1 + prior * float(among.sum())))
    right = (none + odds * one) / (1 + odds)
    assert float(RankingOrNone(3, odds)(r[:, 0], r[:, 1:])) == pytest.approx(right)


def test_data_that_the_noise_never_makes_cost_nothing():
    noise = torch.tensor([[0.5, -1.0, 2.0]]).double()
    rest = torch.nn.functional.softplus(noise.logsumexp(1) - math.log(3)) / 2
    torch.testing.assert_close(RankingOrNone(3)(torch.tensor([torch.inf]).double(), noise), rest.squeeze())


def test_with_one_noise_sample_it_is_half_the_logistic_contrast(generator):
    r = torch.randn(6, 2, generator=generator).double()
    torch.testing.assert_close(2 * RankingOrNone(1)(r[:, 0], r[:, 1:]), Logistic()(r[:, 0], r[:, 1:]))


def test_gradients_are_finite_where_the_ratio_is_zero():
    r = torch.tensor([[0.5, -torch.inf, -torch.inf]], requires_grad=True)
    (gradient,) = torch.autograd.grad(RankingOrNone(2)(r[:, 0], r[:, 1:]), r)
    assert gradient.isfinite().all()
    assert gradient[0, 0] < 0


@pytest.mark.parametrize("contrast", [RankingOrNone(3), RankingOrNone(2, 0.5), Balanced(3)])
def test_the_limit_of_small_temperature(contrast, generator):
    d, T = torch.randn(6, 1 + contrast.noises, generator=generator).double(), 1e-5
    scaled = T * contrast(d[:, 0] / T, d[:, 1:] / T)
    strength = getattr(contrast, "strength", 0.0)
    tolerance = T * (5 + strength * (1 + contrast.noises) ** 2)
    torch.testing.assert_close(contrast.zero_temperature_loss(d[:, 0], d[:, 1:]), scaled, rtol=0, atol=tolerance)


@pytest.mark.parametrize("noises", [1, 3])
def test_a_balanced_classifier_pays_no_penalty_and_a_sure_one_does(noises):
    right = (P / Q).log()

    def penalty(r):
        log_nu = math.log(noises)
        return (P * (r - log_nu).sigmoid()).sum() + noises * (Q * (r - log_nu).sigmoid()).sum() - 1

    assert float(penalty(right)) == pytest.approx(0, abs=1e-12)
    for r in (right + 1, right - 1):
        rows = r[torch.arange(4)], r[torch.arange(4)].repeat_interleave(noises).view(4, noises)
        plain, balanced = Logistic(noises)(*rows), Balanced(noises, 10.0)(*rows)
        on_data = (r - math.log(noises)).sigmoid().mean()
        assert float(balanced - plain) == pytest.approx(10 * float(on_data * (1 + noises) - 1) ** 2)
        assert balanced > plain


def test_arguments_are_checked():
    for make in (lambda: RankingOrNone(0), lambda: RankingOrNone(2, 0.0), lambda: RankingOrNone(2, math.nan)):
        with pytest.raises(InputError):
            make()
    with pytest.raises(InputError, match="strength"):
        Balanced(1, -1.0)


@pytest.mark.parametrize("odds", [1e-200, 1e20, 1e200])
def test_extreme_odds_keep_the_curvature(odds):
    small = min(odds, 1 / odds)  # γ/(1 + γ)²
    assert RankingOrNone(1, odds=odds).curvature == pytest.approx(small)
    assert RankingOrNone(2, odds=odds).curvature == pytest.approx(min(odds, 0.5))


@pytest.mark.parametrize("noises", [0, 2.5, True, "3"])
def test_a_part_of_a_noise_sample_is_refused(noises):
    for contrast in (RankingOrNone, Balanced):
        with pytest.raises(InputError, match="needs at least one noise sample per datum"):
            contrast(noises)
