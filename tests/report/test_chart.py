import math
import re
import xml.etree.ElementTree as ET

from adance.report.chart import HEIGHT, WIDTH, Series, legend, line_chart


def numbers(svg):
    paths = re.findall(r' d="M([^"]+)"', str(svg))
    return [[tuple(map(float, pair.split())) for pair in path.split("L")] for path in paths]


def test_a_line_is_where_its_points_are():
    svg = line_chart("Loss", [Series("loss", [(0, 1.0), (10, 3.0), (20, 2.0)])])
    ET.fromstring(svg)
    (line,) = numbers(svg)
    (x0, y0), (x1, y1), (x2, y2) = line
    assert x0 < x1 < x2
    assert x1 - x0 == x2 - x1
    assert y1 < y2 < y0  # SVG's y grows downwards
    assert "from 1 to 2, between 1 and 3" in svg


def test_values_that_are_not_finite_are_left_out():
    svg = line_chart("v", [Series("v", [(0, 1.0), (1, math.nan), (2, math.inf), (3, 2.0)])])
    assert [len(path) for path in numbers(svg)] == [2]


def test_nothing_to_draw_gives_nothing():
    assert line_chart("v", []) == ""
    assert line_chart("v", [Series("v", [(0, 1.0)])]) == ""


def test_a_constant_line_and_one_far_out_value_stay_inside():
    for values in ([5.0] * 60, [0.0, *[1.0 + i / 100 for i in range(198)], 1e6]):
        svg = line_chart("v", [Series("v", list(enumerate(values)))])
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for path in numbers(svg) for x, y in path)


def test_a_far_out_value_does_not_flatten_the_rest():
    svg = line_chart("v", [Series("v", list(enumerate([*[i / 198 for i in range(199)], 1e6])))])
    ys = [y for _, y in numbers(svg)[0][:-1]]
    assert max(ys) - min(ys) > HEIGHT / 2


def test_long_lines_are_thinned_and_keep_their_ends():
    svg = line_chart("v", [Series("v", [(i, math.sin(i)) for i in range(10_001)])])
    assert all(len(path) <= 402 for path in numbers(svg))
    assert {path[-1][0] for path in numbers(svg)} == {WIDTH - 8.0}


def test_names_are_escaped():
    assert "<b>" not in line_chart("<b>", [Series("<b>", [(0, 0), (1, 1)])])
    assert "<b>" not in legend([Series("<b>", []), Series("c", [])])
