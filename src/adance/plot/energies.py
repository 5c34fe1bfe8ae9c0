"""Histograms of energies."""

import math
from collections.abc import Mapping

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from torch import Tensor

from adance.plot.axes import line_style, new_axes

MAX_BINS = 110


def energy_histogram(energies: Mapping[str, ArrayLike | Tensor], *, ax: Axes | None = None) -> Axes:
    """Draw histograms of several sets of energies over one axis; bars are the share of each set.

    Far tails are cut off: the axis goes from the least 0.2% quantile to the greatest 98% quantile of the sets.

    Args:
        energies: Finite energies ``(N,)`` by the name of their set. Names that mention data, held-out data, samples
            or noise choose its color; held-out data are dashed.
        ax: Axes to draw into.
    """
    ax = new_axes(7, 2.6) if ax is None else ax
    values = {name: torch.as_tensor(part).detach().cpu().double().numpy() for name, part in energies.items()}
    low = min(np.quantile(part, 0.002) for part in values.values())
    high = max(np.quantile(part, 0.98) for part in values.values())
    room = 0.04 * (high - low) or 1.0
    bins = min(MAX_BINS, 4 * math.isqrt(min(map(len, values.values()))))
    edges = np.linspace(low - room, high + room, bins + 1)
    for name, part in values.items():
        style = line_style(name)
        shares = np.histogram(part, edges)[0] / len(part)
        outline = ax.stairs(shares, edges, label=name, linewidth=1.5, **style)
        if style.get("linestyle") != "--":
            ax.stairs(shares, edges, fill=True, alpha=0.18, color=outline.get_edgecolor())
    ax.set(xlim=(edges[0], edges[-1]), yticks=[], xlabel="energy")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax
