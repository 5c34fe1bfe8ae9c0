import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import adance.report
from adance.plot import training_curves
from adance.plot.axes import COLORS
from adance.report.charts import as_chart, chart_axes, compared_curves, group_colors, run_curves

STYLE = (Path(adance.report.__file__).parent / "templates" / "style.css").read_text()


def rows(values, metric="loss"):
    return [{"step": 10 * i, metric: value} for i, value in enumerate(values)]


def curve(svg):
    """The points of the last curve."""
    found = re.findall(r'<path d="M ([^"]+)" clip-path="[^"]*" style="fill: none; stroke: var\(--accent\)', svg)
    return [tuple(map(float, pair.split())) for pair in found[-1].split(" L ")]


def test_a_chart_is_svg_without_colors_fonts_or_sizes_of_its_own():
    svg = as_chart(training_curves(rows([1.0, 3.0, 2.0]), ax=chart_axes()), "Loss & more", "", "words").svg
    assert ET.fromstring(svg).get("aria-label") == "Loss & more. words"
    assert set(re.findall(r"(?:stroke|fill): ([^;\"]+)", svg)) <= {
        "none", "var(--accent)", "var(--line)", "var(--muted)", "var(--quiet)",
    }  # fmt: skip
    assert not re.search(r"#[0-9a-f]{6}\b(?!\))", svg.replace("xlink:href=", ""))
    assert "font" not in svg
    assert 'viewBox="0 0 340 190"' in svg
    assert ">2</text>" in svg  # text is text


def test_a_curve_is_where_its_points_are():
    (chart,) = run_curves(rows([1.0, 3.0, 2.0]))
    assert chart.title == "Loss"
    (x0, y0), (x1, y1), (x2, y2) = curve(chart.svg)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.03)
    assert y0 - y1 == pytest.approx(2 * (y0 - y2), abs=0.03)  # SVG's y grows downwards
    assert 'aria-label="Loss. loss: from 1 to 2, between 1 and 3."' in chart.svg


def test_ids_of_two_charts_differ():
    charts = [as_chart(training_curves(rows([1.0, 3.0]), ax=chart_axes()), label, "", "").svg for label in ("a", "b")]
    first, second = (set(re.findall(r'id="([^"]+)"', svg)) for svg in charts)
    assert first
    assert not first & second


def test_the_palette_is_that_of_the_page_in_light():
    for name, color in COLORS.items():
        assert f"--{name}: {color};" in STYLE.partition("@media")[0]


def test_groups_have_colors_between_the_accent_and_blue():
    assert group_colors(1) == {COLORS["accent"]: "color-mix(in oklab, var(--accent) 100%, var(--far))"}
    assert len(group_colors(9)) == 9
    groups = [(f"<interval {k}>", [rows([1.0, k]), rows([2.0, k])]) for k in (3, 4, 5)]
    (chart,) = compared_curves(groups)
    assert chart.title == "Loss"
    assert [name for name, _, _ in chart.legend] == ["<interval 3>", "<interval 4>", "<interval 5>"]
    assert all(chart.svg.count(color) >= 4 for color in group_colors(3).values())
    assert "&lt;interval 5&gt;: from 2 to 5, between 2 and 5." in chart.svg
