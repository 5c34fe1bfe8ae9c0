"""Metrics during training."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from adance.plot.axes import line_style, new_axes

MAX_POINTS = 400


def training_curves(
    rows: Sequence[Mapping[str, Any]],
    metrics: Sequence[str] | Mapping[str, str] = ("loss",),
    *,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Draw metrics over training steps, faintly as they are and strongly as running means over a twentieth.

    Curves of fewer than 40 points are not smoothed, and values that are not finite are left out. If a fiftieth of the
    values at either end would squeeze the rest into an eighth of the height, these are cut off.

    Args:
        rows: What ``metrics.jsonl`` holds, for example ``run.folder.read_metrics()``.
        metrics: Names of metrics, or a mapping from names to the labels of their curves.
        ax: Axes to draw into.
        style: Arguments of ``ax.plot`` for all curves, such as ``color`` or ``label``.
    """
    ax = new_axes() if ax is None else ax
    labels = metrics if isinstance(metrics, Mapping) else {name: name.replace("_", " ") for name in metrics}
    for metric, label in labels.items():
        steps, values = _finite_points(rows, metric)
        if len(steps) > 1:
            look = {"label": label, **line_style(metric), **style}
            faint = {**look, "label": f"_{look['label']}", "alpha": 0.28, "linewidth": 1, "linestyle": "-"}
            (raw,) = ax.plot(steps, values, **faint)
            ax.plot(steps, _running_mean(values), **{"linewidth": 1.8, **look, "color": raw.get_color()})
    ax.margins(x=0)
    ax.set_xlabel("step")
    if ax.lines:
        _cut_outliers(ax)
    if len(ax.lines) > 2:
        ax.legend(frameon=False)
    return ax


def _finite_points(rows: Sequence[Mapping[str, Any]], metric: str) -> NDArray[Any]:
    """Steps and finite values ``(2, N)`` of a metric; at most ``MAX_POINTS`` of them, evenly spaced."""
    found = [(row["step"], row[metric]) for row in rows if isinstance(row.get(metric), (int, float))]
    points = np.array(found, dtype=float).reshape(-1, 2)
    points = points[np.isfinite(points[:, 1])]
    shown = np.linspace(0, len(points) - 1, min(len(points), MAX_POINTS)).round().astype(int)
    return np.transpose(points[shown])


def _running_mean(values: NDArray[Any]) -> NDArray[Any]:
    place = np.arange(len(values))
    reach = np.minimum(np.minimum(place, place[::-1]), len(values) // 40)
    return np.array([values[i - r : i + r + 1].mean() for i, r in zip(place, reach, strict=True)])


def _cut_outliers(ax: Axes) -> None:
    values = np.sort(np.concatenate([line.get_ydata() for line in ax.lines[::2]]))
    cut = len(values) // 50
    low, high = values[cut], values[len(values) - 1 - cut]
    if 0 < high - low < (values[-1] - values[0]) / 8:
        ax.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    else:
        ax.autoscale(axis="y")
