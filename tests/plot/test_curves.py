import math

import numpy as np
import pytest

from adance.plot import training_curves
from adance.plot.curves import MAX_POINTS


def rows(values, metric="loss"):
    return [{"step": 10 * i, metric: value} for i, value in enumerate(values)]


def test_a_curve_holds_the_points_of_the_metric():
    ax = training_curves(rows([1.0, 3.0, 2.0]))
    for line in ax.lines:  # as it is, and its running mean, which is the same for few points
        assert line.get_xydata().tolist() == [[0, 1], [10, 3], [20, 2]]
    assert ax.get_legend() is None


def test_values_that_are_not_finite_or_missing_are_left_out():
    ax = training_curves([*rows([1.0, math.nan, math.inf, None, 2.0]), {"step": 70}])
    assert ax.lines[0].get_xydata().tolist() == [[0, 1], [40, 2]]


def test_one_point_or_none_draws_no_curve():
    assert not training_curves([]).lines
    assert not training_curves(rows([1.0])).lines


def test_long_curves_are_also_drawn_as_running_means():
    values = np.sin(np.arange(200.0))
    raw, mean = training_curves(rows(values)).lines
    assert raw.get_ydata() == pytest.approx(values)
    assert mean.get_ydata()[0] == values[0]
    assert mean.get_ydata()[100] == pytest.approx(values[95:106].mean())
    assert raw.get_color() == mean.get_color()


def test_very_long_curves_are_thinned_and_keep_their_ends():
    line = training_curves(rows(np.sin(np.arange(10_001.0)))).lines[0]
    assert len(line.get_xdata()) == MAX_POINTS
    assert line.get_xdata()[[0, -1]].tolist() == [0, 100_000]


def test_an_outlier_is_cut_off_and_a_spread_is_not():
    low, high = training_curves(rows([*np.linspace(0, 1, 199), 1e6])).get_ylim()
    assert -0.2 < low < 0.1
    assert 0.9 < high < 1.2
    low, high = training_curves(rows(np.linspace(0, 100, 200))).get_ylim()
    assert low < 0
    assert high > 100


def test_several_metrics_have_a_legend_and_more_runs_can_be_added():
    two = [row | {"energy_noise": -row["energy_data"]} for row in rows([1.0, 2.0, 5.0], "energy_data")]
    ax = training_curves(two, {"energy_data": "data", "energy_noise": "noise"})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["data", "noise"]
    assert training_curves(two, ["energy_data"], ax=ax, color="#123456", label="other") is ax
    assert ax.lines[-1].get_color() == "#123456"
    assert len(ax.lines) == 6
