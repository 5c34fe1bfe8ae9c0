"""Pictures of posteriors: all pairs of parameters, ranks and coverage."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from adance.errors import InputError
from adance.plot.axes import COLORS, new_axes

BINS = 40
COUNTS = LinearSegmentedColormap.from_list("counts", ["#ffffff00", COLORS["far"]])


def corner(
    samples: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    truth: ArrayLike | None = None,
    ranges: Sequence[tuple[float, float]] | None = None,
) -> Figure:
    """Draw the marginals of samples on the diagonal and all pairs below it, in the square root of their counts.

    Args:
        samples: Samples ``(N, d)``, d ≥ 1.
        names: Names of the d parameters.
        truth: A point ``(d,)`` to mark, such as the true parameters.
        ranges: Lower and upper end of each axis; by default where the samples are.

    Raises:
        InputError: ``samples`` is empty or not two-dimensional, or ``names``, ``truth`` or ``ranges`` does not have one
            entry per column.
    """
    x = np.asarray(samples, dtype=float)
    if x.ndim != 2 or x.size == 0:
        raise InputError(f"samples must be a non-empty table of shape (N, d), got {x.shape}")
    d = x.shape[1]
    names = [f"θ{i + 1}" for i in range(d)] if names is None else list(names)
    point = None if truth is None else np.asarray(truth, dtype=float)
    ends = [(float(c.min()), float(c.max())) for c in x.T] if ranges is None else list(ranges)
    if len(names) != d or len(ends) != d or (point is not None and point.shape != (d,)):
        raise InputError(f"names, truth and ranges need one entry for each of the {d} columns of samples")
    figure = Figure(figsize=(1.2 + 1.4 * d, 1.2 + 1.4 * d), layout="constrained")
    grid = figure.subplots(d, d, squeeze=False)
    for row in range(d):
        for column in range(d):
            ax = grid[row, column]
            if column > row:
                ax.set_axis_off()
                continue
            _pair(ax, x, row, column, ends)
            if point is not None:
                _mark(ax, point, row, column)
            ax.set_xlabel(names[column] if row == d - 1 else "")
            ax.set_ylabel(names[row] if column == 0 and row > 0 else "")
            ax.tick_params(labelbottom=row == d - 1, labelleft=column == 0 and row > 0)
    return figure


def rank_histogram(ranks: NDArray[np.floating], bins: int = 20, *, ax: Axes | None = None) -> Axes:
    """Draw a histogram of ranks; gray is the range of 95 % of histograms of uniform ranks, bin by bin.

    Ranks in the middle mean posteriors that are too wide, ranks at the ends posteriors that are too narrow.

    Args:
        ranks: Ranks ``(N,)`` in [0, 1].
        bins: Number of bins.
        ax: Axes to draw into.
    """
    ax = new_axes() if ax is None else ax
    n, p = len(ranks), 1 / bins
    middle, spread = n * p, 1.96 * math.sqrt(n * p * (1 - p))
    ax.axhspan(max(0.0, middle - spread), middle + spread, color=COLORS["line"], label="95 % of uniform ranks")
    ax.hist(ranks, bins, range=(0, 1), color=COLORS["far"], histtype="step", linewidth=1.5)
    ax.set(xlim=(0, 1), xlabel="rank of the true parameter", ylabel="simulations")
    ax.legend(frameon=False)
    return ax


def coverage_curve(levels: NDArray[np.floating], *, ax: Axes | None = None) -> Axes:
    """Draw how often regions of highest density contain the true parameters, over their content.

    Below the diagonal posteriors are over-confident. Gray is the range of 95 % of curves of exact posteriors, level by
    level.

    Args:
        levels: For each simulation the content of the smallest region that contains its parameters ``(N,)``.
        ax: Axes to draw into.
    """
    ax = new_axes(4.0, 4.0) if ax is None else ax
    level = np.linspace(0, 1, 101)
    spread = 1.96 * np.sqrt(level * (1 - level) / len(levels))
    ax.fill_between(level, level - spread, level + spread, color=COLORS["line"], label="95 % of exact posteriors")
    ax.plot(level, [np.mean(levels <= one) for one in level], color=COLORS["accent"])
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="content of the region", ylabel="share of true parameters")
    ax.legend(frameon=False, loc="upper left")
    return ax


def _pair(ax: Axes, x: NDArray[np.floating], row: int, column: int, ends: Sequence[tuple[float, float]]) -> None:
    if row == column:
        ax.hist(x[:, row], BINS, range=ends[row], color=COLORS["far"], histtype="stepfilled", alpha=0.8)
        ax.set_yticks([])
        ax.spines[["top", "right", "left"]].set_visible(False)
    else:
        bins = min(BINS, max(10, int(len(x) ** 0.5 / 2)))
        ax.hist2d(x[:, column], x[:, row], bins, range=[ends[column], ends[row]], cmap=COUNTS, norm=PowerNorm(0.5))
        ax.set_ylim(ends[row])
        ax.yaxis.set_major_locator(MaxNLocator(3))
    ax.set_xlim(ends[column])
    ax.xaxis.set_major_locator(MaxNLocator(3))
    ax.tick_params(length=2, labelcolor=COLORS["quiet"], labelsize="small")


def _mark(ax: Axes, point: NDArray[np.floating], row: int, column: int) -> None:
    if row == column:
        ax.axvline(point[row], color=COLORS["accent"])
    else:
        ax.plot(point[column], point[row], "s", color=COLORS["accent"], markersize=4)
