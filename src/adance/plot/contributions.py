"""What each column of a table adds to a number."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from adance.plot.axes import COLORS, new_axes


def contributions_of_columns(
    values: NDArray[np.float64], columns: Sequence[str], n: int = 10, *, ax: Axes | None = None
) -> Axes:
    """Draw the ``n`` largest contributions as bars, the largest one on top.

    Args:
        values: Contributions ``(D,)`` to the log-density of a row, in nats.
        columns: Names of the columns.
        n: Most bars.
        ax: Axes to draw into.
    """
    ax = new_axes() if ax is None else ax
    order = np.abs(values).argsort()[-n:]
    colors = [COLORS["accent"] if values[i] < 0 else COLORS["far"] for i in order]
    places = np.arange(len(order))
    ax.barh(places, values[order], color=colors)
    ax.set_yticks(places, [columns[i] for i in order])
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("contribution to the log-density (nats)")
    return ax
