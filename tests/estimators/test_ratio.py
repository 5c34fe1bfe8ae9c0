"""DensityRatio learns known ratios and divergences."""

import math

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from adance.errors import InputError
from adance.sklearn import DensityRatio

RNG = np.random.default_rng(0)


def shifted(n: int, shift: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of N(0, 1) with label 0, then of N(shift, 1) with label 1, in the first of two columns."""
    x = np.random.default_rng(seed).normal(size=(2 * n, 2))
    x[n:, 0] += shift
    return x, np.repeat([0, 1], n)


def test_the_ratio_of_two_normal_laws() -> None:
    ratio = DensityRatio(max_steps=300, random_state=0).fit(*shifted(3000, 1.0, 0))
    x, y = shifted(4000, 1.0, 1)
    exact = x[:, 0] - 0.5
    assert np.sqrt(np.mean((ratio.log_ratio(x) - exact) ** 2)) < 0.25
    np.testing.assert_allclose(ratio.predict(x), np.exp(ratio.log_ratio(x)))
    found = ratio.divergences(x, y)
    for name, truth in (("kl", 0.5), ("reverse_kl", 0.5), ("total_variation", math.erf(0.5 / math.sqrt(2)))):
        assert found[name].value == pytest.approx(truth, abs=0.05 + 3 * found[name].error)


def test_the_number_of_rows_of_each_set_does_not_matter() -> None:
    x, y = shifted(3000, 1.0, 0)
    kept = np.r_[0:600, 3000:6000]
    new, _ = shifted(2000, 1.0, 1)
    found = DensityRatio(max_steps=300, random_state=0).fit(x[kept], y[kept]).log_ratio(new)
    assert abs(np.mean(found - (new[:, 0] - 0.5))) < 0.15


def test_weights_have_mean_one_and_correct_the_shift() -> None:
    x, y = shifted(3000, 1.0, 0)
    ratio = DensityRatio(max_steps=300, random_state=0).fit(x, y)
    weights = ratio.weights(x[y == 0], clip=1.0)
    assert weights.mean() == pytest.approx(1)
    effective = ratio.effective_sample_size(x[y == 0], clip=1.0)
    assert effective == pytest.approx(3000 * math.exp(-1), rel=0.35)  # E[w²] = e for a shift of 1
    assert abs(np.average(x[y == 0, 0], weights=weights) - 1) < 0.15


def test_bridges_measure_a_divergence_that_one_step_does_not() -> None:
    x, y = shifted(3000, 6.0, 0)  # KL = 18
    new = shifted(2000, 6.0, 1)
    one, many = (DensityRatio(bridges=bridges, max_steps=200, random_state=0).fit(x, y) for bridges in (1, "auto"))
    assert many.n_bridges_ == 4
    errors = [abs(ratio.divergences(*new)["kl"].value - 18) for ratio in (one, many)]
    assert errors[1] < errors[0]


def test_normal_laws_with_many_columns_start_at_their_exact_ratio() -> None:
    rng = np.random.default_rng(0)
    d, n, rho = 40, 6000, 0.8
    x = rng.normal(size=(2 * n, d))
    x[n:, 1::2] = rho * x[n:, ::2] + math.sqrt(1 - rho**2) * x[n:, 1::2]  # pairs of correlated columns
    fit, new = np.r_[0 : n // 2, n : 3 * n // 2], np.r_[n // 2 : n, 3 * n // 2 : 2 * n]
    ratio = DensityRatio(max_steps=100, random_state=0).fit(x[fit], fit >= n)
    found, exact = ratio.divergences(x[new], new >= n)["kl"], -d / 4 * math.log(1 - rho**2)
    # the bias of the moments of n/2 rows is about d²/n
    assert found.value == pytest.approx(exact, abs=4 * found.error + d**2 / n)


def test_two_tables_are_one_call() -> None:
    x, y = shifted(500, 1.0, 0)
    one, zero = x[y == 1], x[y == 0]
    pair = DensityRatio(max_steps=300, random_state=0).fit_pair(one, zero)
    both = DensityRatio(max_steps=300, random_state=0).fit(np.r_[one, zero], np.repeat(["new", "earlier"], 500))
    np.testing.assert_array_equal(pair.log_ratio(x), both.log_ratio(x))


def test_two_tables_need_the_same_columns() -> None:
    pandas = pytest.importorskip("pandas")
    old, new = (
        pandas.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}),
        pandas.DataFrame({"a": [1.0, 2.0], "c": [3.0, 2.0]}),
    )
    with pytest.raises(InputError, match="the same columns: the denominator lacks c"):
        DensityRatio().fit_pair(new, old)


def test_divergences_need_rows_of_both_sets() -> None:
    x, y = shifted(200, 1.0, 0)
    ratio = DensityRatio(max_steps=300, random_state=0).fit(x, y)
    with pytest.raises(InputError, match="at least 2 rows with each of the two labels"):
        ratio.divergences(x[y == 0], y[y == 0])


def test_sets_that_do_not_overlap_are_named() -> None:
    x = np.r_[np.zeros((10, 2)), np.ones((10, 2))]
    with pytest.warns(ConvergenceWarning, match="the two sets do not overlap in column 0"):
        DensityRatio(max_steps=1, random_state=0).fit(x, x[:, 0])
