import math

import pytest
import torch

from adance.errors import InputError
from adance.sbi.features import DataFeatures


def test_normal_columns_stay_as_they_are_and_skewed_ones_become_normal(generator):
    z = torch.randn(10_000, 1, generator=generator, dtype=torch.float64)
    features = DataFeatures.fit(torch.cat([z, z.exp(), -(3 * z).exp()], 1))
    found = features(torch.cat([z, z.exp(), -(3 * z).exp()], 1))
    inside = z[:, 0].abs() < 2  # the standard error of a quantile at 2 is 0.03
    torch.testing.assert_close(found[inside], torch.cat([z, z, -z], 1)[inside].float(), atol=0.15, rtol=0)


def test_equal_values_have_the_score_of_their_middle_rank():
    """A quarter zeros, three quarters ones: ranks 1/8 and 5/8."""
    x = torch.tensor([0.0] * 250 + [1.0] * 750, dtype=torch.float64)[:, None]
    found = DataFeatures.fit(x)(torch.tensor([[0.0], [1.0]]))
    expected = torch.special.ndtri(torch.tensor([[0.125], [0.625]]))
    torch.testing.assert_close(found, expected, atol=0.01, rtol=0)


def test_scores_are_monotone_and_do_not_end_at_the_simulations(generator):
    features = DataFeatures.fit(torch.randn(1000, 1, generator=generator).double())
    found = features(torch.linspace(-50, 50, 1001)[:, None])[:, 0]
    assert (found.diff() > 0).all()
    assert found.abs().max() < 3.5 + math.log(60)


def test_a_constant_column_is_0():
    features = DataFeatures.fit(torch.full((100, 1), 7.0, dtype=torch.float64))
    assert features(torch.tensor([[7.0]])).abs() < 1e-6


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2, 3), r"x must have shape \(N, 1\), got \(2, 3\)"),
        (torch.tensor([[0.0], [math.nan]]), "row 1 of x is not finite"),
    ],
)
def test_bad_data_are_errors(x, message):
    with pytest.raises(InputError, match=message):
        DataFeatures.fit(torch.zeros(5, 1, dtype=torch.float64))(x)
