import numpy as np
import pytest

from adance.errors import InputError
from adance.plot import corner


def test_a_corner_has_marginals_and_the_pairs_below_them():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    figure = corner(x, ["a", "b", "c"], truth=[0.0, 1.0, 2.0], ranges=[(-1, 1)] * 3)
    axes = np.array(figure.axes).reshape(3, 3)
    assert [[ax.axison for ax in row] for row in axes] == [[column <= row for column in range(3)] for row in range(3)]
    assert [ax.get_xlabel() for ax in axes[2]] == ["a", "b", "c"]
    assert axes[2, 0].get_xlim() == (-1, 1)
    counts = axes[2, 1].collections[0].get_array()
    inside = (np.abs(x[:, 1]) <= 1) & (np.abs(x[:, 2]) <= 1)
    assert counts.sum() == inside.sum()
    assert axes[2, 0].lines[0].get_xydata().tolist() == [[0.0, 2.0]]


@pytest.mark.parametrize(
    ("samples", "arguments", "message"),
    [
        (np.zeros(3), {}, r"samples must be a non-empty table of shape \(N, d\), got \(3,\)"),
        (np.zeros((3, 2)), {"names": ["a"]}, "one entry for each of the 2 columns"),
        (np.zeros((3, 2)), {"truth": [1.0]}, "one entry for each of the 2 columns"),
    ],
)
def test_arguments_that_do_not_fit_are_errors(samples, arguments, message):
    with pytest.raises(InputError, match=message):
        corner(samples, **arguments)
