import pytest
from hypothesis import given
from hypothesis import strategies as st

from adance.report.scale import Scale, number, padded_range, tick_text, ticks


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_inside_evenly_spaced_and_few(low, width):
    high = low + width
    marks = ticks(low, high)
    assert 1 <= len(marks) <= 7 or width < 1e-9 * abs(low)
    slack = 1e-6 * width + 1e-9 * abs(low)
    assert all(low - slack <= mark <= high + slack for mark in marks)


def test_ticks_are_round():
    assert ticks(0, 8000) == [0, 2000, 4000, 6000, 8000]
    assert ticks(-0.31, 0.2) == pytest.approx([-0.2, 0, 0.2])


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5))
def test_a_range_holds_its_values_and_has_a_width(values):
    low, high = padded_range(values)
    assert low <= min(values) <= max(values) <= high
    assert high > low


def test_numbers_are_written_for_people():
    assert [number(v) for v in (0, -0.25, 8000.0, 1e-5, 2.5e7, float("nan"))] == [
        "0", "−0.25", "8,000", "1e−5", "25,000,000", "not finite",
    ]  # fmt: skip
    assert [tick_text(v, 2000) for v in (0, 2000, 10000)] == ["0", "2k", "10k"]
    assert [tick_text(v, 0.05) for v in (-0.05, 0.1)] == ["−0.05", "0.10"]


def test_a_scale_maps_ends_to_ends():
    scale = Scale(0, 10, 100, 0)
    assert (scale(0), scale(5), scale(10)) == (100, 50, 0)
