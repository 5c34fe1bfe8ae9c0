"""The colors, axes and number format that all plots share."""

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

COLORS = {"accent": "#c25420", "far": "#2f4f63", "muted": "#8a857d", "ink": "#1d1c1a", "quiet": "#5f5b55"}
COLORS["line"] = "#e6e2db"
"""The light colors of reports, by the name of their CSS variable."""


def new_axes(width: float = 5.0, height: float = 3.0) -> Axes:
    """Axes of a new figure of ``width`` by ``height`` inches, with grid lines instead of a frame."""
    ax: Axes = Figure(figsize=(width, height), layout="constrained").subplots()
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(COLORS["muted"])
    ax.tick_params(length=0, pad=5, labelcolor=COLORS["quiet"])
    ax.grid(axis="y", color=COLORS["line"])
    ax.set_axisbelow(True)
    ax.set_prop_cycle(color=[COLORS[name] for name in ("accent", "far", "muted", "ink")])
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(ScalarFormatter(useOffset=False))
    return ax


def line_style(name: str) -> dict[str, Any]:
    """The color and dashes of a quantity whose name mentions data, held-out data, noise or samples."""
    for word, color in (("noise", "muted"), ("samples", "ink"), ("data", "accent"), ("held", "accent")):
        if word in name:
            return {"color": COLORS[color], "linestyle": "--" if "held" in name else "-"}
    return {}


def format_number(value: float) -> str:
    """A number to four digits, with a minus sign instead of a hyphen; thousands are grouped."""
    if not math.isfinite(value):
        return "not finite"
    whole = 1000 <= abs(value) < 1e6 or (abs(value) < 1e15 and value == round(value))
    text = f"{value:,.0f}" if whole else f"{value:.4g}"
    return text.replace("e-0", "e-").replace("e+0", "e").replace("e+", "e").replace("-", "−")
