"""The charts of a page: SVG whose colors are CSS variables, so that they follow light, dark and print."""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from torch import Tensor

from adance.plot import energy_histogram, training_curves
from adance.plot.axes import COLORS, format_number, new_axes

Rows = Sequence[dict[str, float]]
CSS = {color: f"var(--{name})" for name, color in COLORS.items()}


class CurveSpec(NamedTuple):
    """A chart of training to draw, and the labels of its metrics."""

    title: str
    note: str
    metrics: dict[str, str]


class Chart(NamedTuple):
    """A chart, and its legend as (name, CSS color, whether it is dashed)."""

    title: str
    note: str
    svg: Markup
    legend: list[tuple[str, str, bool]]


ENERGIES = {"energy_data": "data", "energy_held_out": "held out", "energy_noise": "noise"}
CURVES = (
    CurveSpec("Distance of samples", "Of fresh samples from held-out data.", {"sample_distance": "distance"}),
    CurveSpec("Loss", "The contrast of data and noise.", {"loss": "loss"}),
    CurveSpec("Energies", "Held-out data should stay with training data; a gap is overfitting.", ENERGIES),
    CurveSpec(
        "Gradient norm",
        "Mean ‖∇E‖ along the chains. A flat curve is healthy; unbounded growth precedes divergence.",
        {"gradient_norm": "gradient norm"},
    ),
    CurveSpec(
        "Log-ratio",
        "How far the model has moved from its snapshot, in units of the ratio's temperature.",
        {"ratio_data": "data", "ratio_noise": "noise"},
    ),
    CurveSpec("AUC", "How often data have less energy than noise; ½ if they are indistinguishable.", {"auc": "AUC"}),
    CurveSpec(
        "Effective sample share",
        "The share of the snapshot's noise samples that still counts under the current model.",
        {"effective_sample_share": "share"},
    ),
    CurveSpec("Log Z", "The learned normalizing constant.", {"log_z": "log Z"}),
)
COMPARED = ("Distance of samples", "Loss", "Gradient norm", "AUC", "Effective sample share")


def run_curves(rows: Rows) -> list[Chart]:
    """The curves of one run, those that it has."""
    drawn = [(spec, training_curves(rows, spec.metrics, ax=chart_axes())) for spec in CURVES]
    return [as_chart(ax, spec.title, spec.note, describe(ax)) for spec, ax in drawn if ax.lines]


def compared_curves(groups: Sequence[tuple[str, Sequence[Rows]]]) -> list[Chart]:
    """The curves of groups of runs, given by name and rows, in the same charts; each group has a color."""
    colors = group_colors(len(groups))
    found = []
    for spec in (spec for spec in CURVES if spec.title in COMPARED):
        ax = chart_axes()
        for (name, runs), color in zip(groups, colors, strict=True):
            for rows in runs:
                training_curves(rows, list(spec.metrics), ax=ax, color=color, label=name)
        found += [as_chart(ax, spec.title, spec.note, describe(ax), CSS | colors)] if ax.lines else []
    return found


def energies_chart(energies: Mapping[str, Tensor]) -> Chart:
    """The histogram of energies ``(N,)`` by their kind; its note is the means in words."""
    means = " ".join(f"{name}: mean {format_number(float(values.mean()))}." for name, values in energies.items())
    ax = energy_histogram(energies, ax=chart_axes(700))
    ax.tick_params(pad=9)
    return as_chart(ax, "Energies", means, means)


def group_colors(n: int) -> dict[str, str]:
    """Colors of ``n`` ordered groups, from the accent to blue, each with its CSS."""
    blend = LinearSegmentedColormap.from_list("groups", [COLORS["far"], COLORS["accent"]])
    percents = [round(100 - 88 * place / max(n - 1, 1)) for place in range(n)]
    return {to_hex(blend(p / 100)): f"color-mix(in oklab, var(--accent) {p}%, var(--far))" for p in percents}


def chart_axes(width: int = 340, height: int = 190) -> Axes:
    """Axes of ``width`` by ``height`` CSS pixels."""
    return new_axes(width / 72, height / 72)


def describe(ax: Axes) -> str:
    """Training curves in words."""
    parts = []
    for line in ax.lines[::2]:
        y = np.asarray(line.get_ydata())
        first, last, low, high = map(format_number, (y[0], y[-1], y.min(), y.max()))
        parts.append(f"{str(line.get_label())[1:]}: from {first} to {last}, between {low} and {high}.")
    return " ".join(parts)


def as_chart(ax: Axes, title: str, note: str, words: str, css: Mapping[str, str] = CSS) -> Chart:
    """The figure of ``ax`` as an ``<svg>`` with colors from ``css``; its legend and axis label are left to the page."""
    legend: dict[str, tuple[str, str, bool]] = {}
    handles, names = ax.get_legend_handles_labels()
    for name, handle in dict[Any, Any](zip(names, handles, strict=True)).items():
        color = to_hex(handle.get_edgecolor() if hasattr(handle, "get_edgecolor") else handle.get_color())
        legend[name] = (name, css.get(color, color), handle.get_linestyle() == "--")
    ax.set_xlabel("")
    if drawn := ax.get_legend():
        drawn.remove()
    figure: Any = ax.figure
    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue().partition("<svg")[2]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'(?<=<g) id="[^"]*"| (?:width|height)="[\d.]+pt"|font(?:-\w+)?: [^;"]*;? ?', "", text)
    text = re.sub(r'(?<=[ "])(-?\d+\.\d\d)\d+|\s*\n\s*', lambda found: found[1] or " ", text)  # shorter coordinates
    text = re.sub("#[0-9a-f]{6}", lambda found: css.get(found[0], found[0]), text)
    svg = Markup(f'<svg role="img" aria-label="{escape(f"{title}. {words}")}"{text}')
    return Chart(title, note, svg, list(legend.values()))
