"""A learned density in the plane, with data and samples."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from torch import Tensor

from adance.errors import InputError
from adance.plot.axes import COLORS, new_axes

RESOLUTION = 240
INVISIBLE_TO_ACCENT = LinearSegmentedColormap.from_list("accent", [COLORS["accent"] + "00", COLORS["accent"]])
Window = tuple[float, float, float]


def density(
    energy: Callable[[Tensor], Tensor],
    data: ArrayLike | Tensor | None = None,
    samples: ArrayLike | Tensor | None = None,
    *,
    temperature: float = 1.0,
    window: Window | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the density ``exp(−E/T)`` of an energy in the plane, under data and samples.

    Args:
        energy: The energy, ``(B, 2) -> (B,)``, such as ``run.score``.
        data: Points ``(N, 2)``, small and gray.
        samples: Points ``(M, 2)``, larger and dark.
        temperature: T.
        window: Center and half the side of the square to show; by default it holds the data, or else the samples.
        ax: Axes to draw into.

    Raises:
        InputError: There are neither data nor samples nor a window.
    """
    ax = new_axes(4, 4) if ax is None else ax
    x, y, half = window = window or window_of(samples if data is None else data)
    extent = (x - half, x + half, y - half, y + half)
    image = density_image(energy, window, temperature).numpy()
    ax.imshow(image, INVISIBLE_TO_ACCENT, vmin=0, vmax=1, extent=extent)
    if data is not None:
        _points(ax, data, window, "data", "muted", 2)
    if samples is not None:
        _points(ax, samples, window, "samples", "ink", 4)
    ax.set(xlim=extent[:2], ylim=extent[2:], aspect="equal")
    ax.grid(False)
    if ax.lines:
        ax.legend(frameon=False)
    return ax


def save_plane(
    energy: Callable[[Tensor], Tensor], data: Tensor | None, samples: Tensor, path: Path, temperature: float = 1.0
) -> None:
    """Write a PNG of data ``(N, 2)`` if given, samples ``(M, 2)`` and the density, side by side."""
    panels = {"data": data, "samples": samples, "density": None}
    panels = {title: points for title, points in panels.items() if points is not None or title == "density"}
    window = window_of(samples if data is None else data)
    figure = Figure(figsize=(4 * len(panels), 4), layout="compressed")
    for ax, (title, points) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        ax.set_title(title)
        if points is None:
            density(energy, temperature=temperature, window=window, ax=ax)
        else:
            _points(ax, points, window, title, "far", 2)
    figure.savefig(path, format="png", dpi=100)


def window_of(points: ArrayLike | Tensor | None) -> Window:
    """The center and half the side of a square around ``points`` ``(N, 2)``.

    Raises:
        InputError: There are none.
    """
    if points is None:
        raise InputError("density needs data, samples or a window to know which square to show")
    x = torch.as_tensor(points).detach().float().cpu()
    center = x.mean(0)
    return float(center[0]), float(center[1]), float(1.25 * (x - center).abs().max())


@torch.no_grad()
def density_image(energy: Callable[[Tensor], Tensor], window: Window, temperature: float = 1.0) -> Tensor:
    """``exp(−E/2T)`` over its greatest value, ``(H, W)`` with the top row first: the square root shows tails."""
    axis = torch.linspace(-window[2], window[2], RESOLUTION)
    log_density = -energy(torch.cartesian_prod(axis, axis) + torch.tensor(window[:2])).float().cpu() / temperature
    return (log_density - log_density.max()).div(2).exp().view(RESOLUTION, RESOLUTION).T.flip(0)


def _points(ax: Axes, points: ArrayLike | Tensor, window: Window, label: str, color: str, size: float) -> None:
    x = np.asarray(torch.as_tensor(points).detach().cpu())
    ax.plot(x[:, 0], x[:, 1], ".", markersize=size, color=COLORS[color], label=label)
    cx, cy, half = window
    ax.set(xlim=(cx - half, cx + half), ylim=(cy - half, cy + half), aspect="equal")
