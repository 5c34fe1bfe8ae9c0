"""Line charts as SVG: colours come from the page, so that they follow light, dark and print."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from adance.report.scale import Scale, number, padded_range, tick_text, ticks

Point = tuple[float, float]

WIDTH, HEIGHT = 340, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 8, 24
MOST_POINTS = 400
ENOUGH_TO_SMOOTH = 40


@dataclass(frozen=True)
class Series:
    """A line: its name, its points in order, and its colour as CSS."""

    name: str
    points: list[Point]
    color: str = "var(--accent)"
    dashed: bool = False


def line_chart(title: str, series: Sequence[Series]) -> Markup:
    """The chart as an ``<svg>``; empty where no series has two finite points.

    A long line is drawn twice: faintly as it is, and strongly its running mean. Where a few values are far outside the
    others' range they are cut off.
    """
    drawn = [Series(s.name, _thin(_finite(s.points)), s.color, s.dashed) for s in series]
    drawn = [s for s in drawn if len(s.points) > 1]
    if not drawn:
        return Markup("")
    xs = [x for s in drawn for x, _ in s.points]
    x = Scale(min(xs), max(max(xs), min(xs) + 1), LEFT, WIDTH - RIGHT)
    y = Scale(*_shown_range([y for s in drawn for _, y in s.points]), HEIGHT - BOTTOM, TOP)
    lines = Markup("").join(_line(s, x, y) for s in drawn)
    return frame(f"{title}. {_in_words(drawn)}", axes(x, y) + Markup('<g class="lines">{}</g>').format(lines))


def frame(label: str, inside: Markup, width: float = WIDTH) -> Markup:
    """An ``<svg>`` of the usual height."""
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(width, HEIGHT, label, inside)


def axes(x: Scale, y: Scale) -> Markup:
    """Grid lines and labels."""
    parts = []
    marks = ticks(y.low, y.high)
    for value in marks:
        at, text = round(y(value), 1), tick_text(value, marks[-1] - marks[-2] if len(marks) > 1 else 1)
        parts.append(Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(x.first, x.last, at, at))
        parts.append(Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(x.first - 6, at + 4, text))
    return Markup("").join(parts) + x_axis(x)


def x_axis(x: Scale, about: int = 4) -> Markup:
    """The line below, and its labels."""
    base, parts = HEIGHT - BOTTOM, []
    marks = ticks(x.low, x.high, about)
    for value in marks:
        at, text = round(x(value), 1), tick_text(value, marks[-1] - marks[-2] if len(marks) > 1 else 1)
        anchor = "end" if at > x.last - 12 else "middle"
        parts.append(Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(at, HEIGHT - 6, anchor, text))
    line = Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(x.first, x.last, base, base)
    return line + Markup("").join(parts)


def path(points: Sequence[Point], x: Scale, y: Scale) -> str:
    """The ``d`` of a path through ``points``; what leaves the drawing is cut off at its edge."""
    low, high = sorted((y.first, y.last))
    return "M" + "L".join(f"{x(a):.1f} {min(max(y(b), low), high):.1f}" for a, b in points)


def _line(series: Series, x: Scale, y: Scale) -> Markup:
    style = f"stroke:{series.color}" + (";stroke-dasharray:5 4" if series.dashed else "")
    smooth = len(series.points) >= ENOUGH_TO_SMOOTH
    raw = Markup('<path class="raw" style="{}" d="{}"/>').format(f"stroke:{series.color}", path(series.points, x, y))
    strong = Markup('<path style="{}" d="{}"/>').format(
        style, path(_running_mean(series.points) if smooth else series.points, x, y)
    )
    return raw + strong if smooth else strong


def _finite(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if math.isfinite(point[1])]


def _thin(points: list[Point]) -> list[Point]:
    every = math.ceil(len(points) / MOST_POINTS)
    return points[::every] + (points[-1:] if (len(points) - 1) % every else []) if points else points


def _running_mean(points: Sequence[Point]) -> list[Point]:
    half = max(1, len(points) // 40)
    means = []
    for i, (at, _) in enumerate(points):
        reach = min(half, i, len(points) - 1 - i)
        near = [value for _, value in points[i - reach : i + reach + 1]]
        means.append((at, sum(near) / len(near)))
    return means


def _shown_range(values: Sequence[float]) -> tuple[float, float]:
    """All values, unless a fiftieth at either end would squeeze the rest into an eighth of the height."""
    ordered = sorted(values)
    cut = len(ordered) // 50
    core = ordered[cut : len(ordered) - cut]
    if 0 < core[-1] - core[0] < (ordered[-1] - ordered[0]) / 8:
        return padded_range(core)
    return padded_range(ordered)


def _in_words(series: Sequence[Series]) -> str:
    return " ".join(
        f"{s.name}: from {number(s.points[0][1])} to {number(s.points[-1][1])}, "
        f"between {number(min(v for _, v in s.points))} and {number(max(v for _, v in s.points))}."
        for s in series
    )


def legend(series: Sequence[Series]) -> Markup:
    """Names and strokes of several lines; nothing for one."""
    if len(series) < 2:
        return Markup("")
    dash = Markup(' stroke-dasharray="5 4"')
    items = Markup("").join(
        Markup(
            '<li><svg viewBox="0 0 22 8" aria-hidden="true">'
            '<line x1="0" x2="22" y1="4" y2="4" style="stroke:{}"{}/></svg>{}</li>'
        ).format(s.color, dash if s.dashed else "", escape(s.name))
        for s in series
    )
    return Markup('<ul class="legend">{}</ul>').format(items)


def steps_of(edges: Sequence[float], heights: Sequence[float]) -> list[Point]:
    """The outline of bars between ``edges``, from the base and back to it."""
    points: list[Point] = [(edges[0], 0.0)]
    for (left, right), height in zip(pairwise(edges), heights, strict=True):
        points += [(left, height), (right, height)]
    return [*points, (edges[-1], 0.0)]
