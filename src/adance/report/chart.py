"""Axes as SVG whose colors are CSS variables, so that charts follow light, dark and print."""

import io
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from markupsafe import Markup, escape
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from adance.plot.axes import COLORS, new_axes

CSS = {color: f"var(--{name})" for name, color in COLORS.items()}


class Chart(NamedTuple):
    """A chart, and its legend as (name, CSS color, whether it is dashed)."""

    svg: Markup
    legend: list[tuple[str, str, bool]]


def chart_axes(width: int = 340, height: int = 190) -> Axes:
    """Axes of ``width`` by ``height`` CSS pixels."""
    return new_axes(width / 72, height / 72)


def as_chart(ax: Axes, label: str, css: Mapping[str, str] = CSS) -> Chart:
    """The figure of ``ax`` as an ``<svg>`` with colors from ``css``; its legend is left to the page."""
    names: dict[str, tuple[str, str, bool]] = {}
    labeled: Iterable[tuple[Any, Any]] = zip(*ax.get_legend_handles_labels(), strict=True)
    for handle, name in labeled:
        color = to_hex(handle.get_edgecolor() if hasattr(handle, "get_edgecolor") else handle.get_color())
        names[name] = (name, css.get(color, color), handle.get_linestyle() == "--")
    if legend := ax.get_legend():
        legend.remove()
    return Chart(_svg(ax.figure, label, css), list(names.values()))


def _svg(figure: Any, label: str, css: Mapping[str, str]) -> Markup:
    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": label}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue().partition("<svg")[2]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'(?<=<g) id="[^"]*"| (?:width|height)="[\d.]+pt"|font(?:-\w+)?: [^;"]*;? ?', "", text)
    text = re.sub(r'(?<=[ "])(-?\d+\.\d\d)\d+|\s*\n\s*', lambda found: found[1] or " ", text)  # shorter coordinates
    text = re.sub("#[0-9a-f]{6}", lambda found: css.get(found[0], found[0]), text)
    return Markup(f'<svg role="img" aria-label="{escape(label)}"{text}')
