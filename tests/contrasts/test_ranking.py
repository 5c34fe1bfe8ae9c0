import itertools
import math

import pytest
import torch

from adance.contrasts import Balanced, Conditional, Ranking, RankingOrNone
from adance.errors import InputError

RHO = (0.5, 0.2, 0.2, 0.1)


def draws(generator, b=6, m=3):
    return torch.randn(b, 1 + m, generator=generator, dtype=torch.float64)


def test_loss_is_the_sum_over_the_places_of_the_datum(generator):
    r = draws(generator)
    for rho in (RHO, (0.25,) * 4):
        right = torch.zeros(6, dtype=torch.float64)
        for k in range(4):
            noises = iter(range(1, 4))
            placed = torch.stack([r[:, 0] if i == k else r[:, next(noises)] for i in range(4)], 1)
            joint = torch.tensor(rho, dtype=torch.float64) * placed.exp()
            right -= rho[k] * (joint[:, k] / joint.sum(1)).log()
        torch.testing.assert_close(Ranking(3, rho)(r[:, 0], r[:, 1:]), right.mean())
    torch.testing.assert_close(Ranking(3)(r[:, 0], r[:, 1:]), right.mean())


@pytest.mark.parametrize("contrast", [Ranking(3), Ranking(3, RHO), Conditional(3)])
def test_a_constant_in_the_ratio_cancels(contrast, generator):
    r = draws(generator)
    one, two = (contrast(r[:, 0] + c, r[:, 1:] + c) for c in (0.0, 7.0))
    torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)
    assert contrast.ignores_constant


@pytest.mark.parametrize(
    "contrast",
    [
        *(Ranking(1), Ranking(5), Ranking(3, RHO), Conditional(1), Conditional(4)),
        *(RankingOrNone(1), RankingOrNone(5, 2.0), Balanced(), Balanced(3, 7.0)),
    ],
)
def test_at_ratio_zero_the_gradient_is_the_curvature_times_the_likelihood_s(contrast):
    data = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    noise = torch.zeros(4, contrast.noises, dtype=torch.float64, requires_grad=True)
    contrast(data, noise).backward()
    torch.testing.assert_close(data.grad, torch.full_like(data, -contrast.curvature / 4))
    assert noise.grad.sum().item() == pytest.approx(contrast.curvature)


def test_curvature_of_equal_places():
    assert Ranking(9).curvature == pytest.approx(0.9)
    assert Ranking(9, [0.1] * 10).curvature == pytest.approx(0.9)


@pytest.mark.parametrize("contrast", [Ranking(3), Ranking(3, RHO), Conditional(3)])
def test_max_margin_is_the_limit_of_small_temperature(contrast, generator):
    d, T = draws(generator), 1e-5
    scaled = T * contrast(d[:, 0] / T, d[:, 1:] / T)
    torch.testing.assert_close(contrast.zero_temperature_loss(d[:, 0], d[:, 1:]), scaled, rtol=0, atol=5 * T)


@pytest.mark.parametrize("contrast", [Ranking(3), Conditional(3)])
def test_slopes_of_the_limit_at_a_tie_are_the_contrast_s(contrast):
    grads = []
    for loss in (contrast, contrast.zero_temperature_loss):
        data = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        noise = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
        loss(data, noise).backward()
        grads.append((data.grad, noise.grad))
    torch.testing.assert_close(grads[0], grads[1])


def test_two_places_and_one_pair_are_the_same(generator):
    r = draws(generator, 20, 1)
    torch.testing.assert_close(Ranking(1)(r[:, 0], r[:, 1:]), Conditional(1)(r[:, 0], r[:, 1:]))


def test_conditional_loss_is_the_cross_entropy_of_the_order_of_each_pair(generator):
    r = draws(generator)
    u = r.exp()
    right = torch.stack([-(u[i, 0] / (u[i, 0] + u[i, j])).log() for i, j in itertools.product(range(6), range(1, 4))])
    torch.testing.assert_close(Conditional(3)(r[:, 0], r[:, 1:]), right.mean())


@pytest.mark.parametrize("contrast", [Ranking(4), Conditional(4), Ranking(2, (0.6, 0.2, 0.2))])
def test_extreme_ratios_are_finite(contrast):
    r = torch.linspace(-200, 200, 50, requires_grad=True)
    loss = contrast(r, r.flip(0)[:, None].expand(-1, contrast.noises))
    assert loss.isfinite()
    assert torch.autograd.grad(loss, r)[0].isfinite().all()


def test_variance_of_the_estimator_with_known_class_probabilities_is_less(generator):
    # (2.12) draws the place of the datum in each collection; (2.16) sums over the places.
    rho, rows, repeats = torch.tensor(RHO, dtype=torch.float64), 32, 2000
    contrast = Ranking(3, RHO)
    r = torch.randn(repeats, rows, 4, generator=generator, dtype=torch.float64)
    r[..., 0] += 1.0
    place = torch.multinomial(rho, repeats * rows, replacement=True, generator=generator).view(repeats, rows, 1)
    # the datum at its place, the noises in order at the others
    index = torch.arange(4).expand(repeats, rows, 4)
    index = torch.where(index == place, 0, torch.where(index < place, index + 1, index))
    logits = rho.log() + r.gather(2, index)
    drawn = -(logits.log_softmax(2).gather(2, place)).squeeze(2).mean(1)
    known = torch.stack([contrast(row[:, 0], row[:, 1:]) for row in r])
    assert abs(drawn.mean() - known.mean()) < 5 * ((drawn - known).var() / repeats).sqrt()
    spread = 5 * math.sqrt(2 / repeats)
    assert known.var() * (1 + spread) < drawn.var() * (1 - spread)


def test_bad_settings_are_refused():
    for make in (
        lambda: Ranking(0),
        lambda: Conditional(0),
        lambda: Ranking(2, (0.5, 0.5)),
        lambda: Ranking(1, (0.7, 0.7)),
        lambda: Ranking(1, (1.0, 0.0)),
    ):
        with pytest.raises(InputError):
            make()
