import math

import numpy as np
import pytest
import torch

from adance.errors import InputError
from adance.sbi import calibrate

N = 60


@pytest.fixture(scope="module")
def pairs():
    generator = torch.Generator().manual_seed(0)
    theta = math.sqrt(0.1) * torch.randn(N, 10, generator=generator)
    return theta, theta + math.sqrt(0.1) * torch.randn(N, 10, generator=generator)


def test_the_true_posteriors_are_calibrated(exact, pairs):
    found = calibrate(exact, *pairs)
    assert found.ranks.shape == (N, 10)
    # mean and mean square of uniform numbers, within four standard errors of 10·N ranks
    ranks = found.ranks.flatten()
    assert abs(ranks.mean() - 1 / 2) < 4 * math.sqrt(1 / 12 / len(ranks))
    assert abs(ranks.square().mean() - 1 / 3) < 4 * math.sqrt(4 / 45 / len(ranks))
    assert abs(found.excess) < 3 * found.excess_error
    assert abs(found.coverage(0.5) - 0.5) < 4 * math.sqrt(0.25 / N)


@pytest.mark.parametrize(("factor", "word"), [(4.0, "over-confident"), (0.5, "under-confident")])
def test_posteriors_that_are_too_narrow_or_too_wide_are_found(exact, pairs, factor, word):
    """A likelihood that counts four times makes narrow posteriors, half of it wide ones."""
    net = exact.model.energy.net
    exact.model.energy.net = type("Scaled", (torch.nn.Module,), {"forward": lambda self, u, x: factor * net(u, x)})()
    found = calibrate(exact, *pairs)
    assert found.verdict.startswith(word)


def test_pictures_show_the_ranks_and_the_coverage(exact, pairs):
    found = calibrate(exact, pairs[0][:20], pairs[1][:20])
    histogram = found.plot_ranks(3)
    heights = histogram.patches[-1].get_xy()[:, 1]
    assert heights.max() == np.histogram(found.ranks[:, 3], 20, (0, 1))[0].max()
    curve = found.plot_coverage().lines[0].get_ydata()
    assert curve[50] == pytest.approx((found.levels <= 0.5).float().mean().item())
    assert curve[-1] == 1


def test_rows_must_fit(exact):
    with pytest.raises(InputError, match="must have"):
        calibrate(exact, torch.zeros(3, 10), torch.zeros(2, 10))
