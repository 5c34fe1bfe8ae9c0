"""A learned density in the plane, with data and samples."""

from collections.abc import Callable

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
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
    ax: Axes | None = None,
) -> Axes:
    """Draw the density ``exp(−E/T)`` of an energy in the plane, under data and samples.

    The color is the square root of the density, which shows tails. The square that is drawn holds the data, or the
    samples if there are no data.

    Args:
        energy: The energy, ``(B, 2) -> (B,)``, such as ``run.score``.
        data: Points ``(N, 2)``, small and gray.
        samples: Points ``(M, 2)``, larger and dark.
        temperature: T.
        ax: Axes to draw into.

    Raises:
        InputError: There are neither data nor samples.
    """
    ax = new_axes(4.5, 4.5) if ax is None else ax
    x, y, half = window = window_of(samples if data is None else data)
    extent = (x - half, x + half, y - half, y + half)
    image = density_image(energy, window, temperature).numpy()
    ax.imshow(image, INVISIBLE_TO_ACCENT, vmin=0, vmax=1, extent=extent)
    for label, points, size, color in (("data", data, 2, "muted"), ("samples", samples, 3, "ink")):
        if points is not None:
            at = torch.as_tensor(points).detach().cpu().numpy()
            ax.plot(at[:, 0], at[:, 1], ".", markersize=size, color=COLORS[color], label=label)
    ax.set(xlim=extent[:2], ylim=extent[2:], aspect="equal")
    ax.grid(False)
    ax.legend(frameon=False, markerscale=3)
    return ax


def window_of(points: ArrayLike | Tensor | None) -> Window:
    """The center and half the side of a square around ``points`` ``(N, 2)``.

    Raises:
        InputError: There are none.
    """
    if points is None:
        raise InputError("density needs data or samples to choose the range of its axes")
    x = torch.as_tensor(points).detach().float().cpu()
    return float(x[:, 0].mean()), float(x[:, 1].mean()), float(1.25 * (x - x.mean(0)).abs().max())


@torch.no_grad()
def density_image(energy: Callable[[Tensor], Tensor], window: Window, temperature: float = 1.0) -> Tensor:
    """The square root of ``exp(−E/T)`` over its greatest value, ``(H, W)`` with the top row first."""
    axis = torch.linspace(-window[2], window[2], RESOLUTION)
    log_density = -energy(torch.cartesian_prod(axis, axis) + torch.tensor(window[:2])).float().cpu() / temperature
    return (log_density - log_density.max()).div(2).exp().view(RESOLUTION, RESOLUTION).T.flip(0)
