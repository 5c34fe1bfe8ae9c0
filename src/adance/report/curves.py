"""Which curves of training a report shows, and what they say."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex

from adance.plot import training_curves
from adance.plot.axes import COLORS, format_number
from adance.report.chart import CSS, Chart, as_chart, chart_axes

Rows = Sequence[dict[str, float]]


class CurveSpec(NamedTuple):
    """A chart to draw, what it means, and the labels of its metrics."""

    title: str
    note: str
    metrics: dict[str, str]
    compared: bool = False


CURVES = (
    CurveSpec("Loss", "The contrast of data and noise.", {"loss": "loss"}, compared=True),
    CurveSpec(
        "Energies",
        "Held-out data should stay with training data; a gap is overfitting.",
        {"energy_data": "data", "energy_held_out": "held out", "energy_noise": "noise"},
    ),
    CurveSpec(
        "Gradient norm",
        "Mean ‖∇E‖ along the chains. A flat curve is healthy; unbounded growth precedes divergence.",
        {"gradient_norm": "gradient norm"},
        compared=True,
    ),
    CurveSpec(
        "Log-ratio",
        "How far the model has moved from its snapshot, in units of the ratio's temperature.",
        {"ratio_data": "data", "ratio_noise": "noise"},
    ),
    CurveSpec(
        "AUC",
        "How often a data point has less energy than a noise sample. At ½ they cannot be distinguished.",
        {"auc": "AUC"},
        compared=True,
    ),
    CurveSpec(
        "Effective sample share",
        "The share of the snapshot's noise samples that still counts under the current model.",
        {"effective_sample_share": "share"},
        compared=True,
    ),
    CurveSpec("Log Z", "The learned normalizing constant.", {"log_z": "log Z"}),
)


def run_curves(rows: Rows) -> list[tuple[CurveSpec, Chart]]:
    """The curves of one run, those that it has."""
    drawn = [(spec, training_curves(rows, spec.metrics, ax=chart_axes())) for spec in CURVES]
    return [(spec, as_chart(ax, describe(spec.title, ax))) for spec, ax in drawn if ax.lines]


def compared_curves(groups: Sequence[tuple[str, Sequence[Rows]]]) -> list[tuple[CurveSpec, Chart]]:
    """The curves of several groups of runs in the same charts, a color for each group.

    Args:
        groups: The name of each group, and the rows of its runs.
    """
    colors = group_colors(len(groups))
    found = []
    for spec in (spec for spec in CURVES if spec.compared):
        ax = chart_axes()
        for (name, runs), color in zip(groups, colors, strict=True):
            for rows in runs:
                training_curves(rows, list(spec.metrics), ax=ax, color=color, label=name)
        if ax.lines:
            found.append((spec, as_chart(ax, describe(spec.title, ax), CSS | colors)))
    return found


def group_colors(n: int) -> dict[str, str]:
    """Colors of ``n`` ordered groups, from the accent to blue, each with its CSS."""
    blend = LinearSegmentedColormap.from_list("groups", [COLORS["far"], COLORS["accent"]])
    percents = [round(100 - 88 * place / max(n - 1, 1)) for place in range(n)]
    return {to_hex(blend(p / 100)): f"color-mix(in oklab, var(--accent) {p}%, var(--far))" for p in percents}


def describe(title: str, ax: Axes) -> str:
    """The curves of a chart in words."""
    parts = [f"{title}."]
    for line in ax.lines[::2]:
        values = np.asarray(line.get_ydata())
        first, last, low, high = (format_number(v) for v in (values[0], values[-1], values.min(), values.max()))
        parts.append(f"{str(line.get_label())[1:]}: from {first} to {last}, between {low} and {high}.")
    return " ".join(parts)
