"""Chains at several of their steps."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from torch import Tensor

from adance.errors import InputError
from adance.plot.axes import COLORS, new_axes
from adance.plot.grid import tile


def chain_film(
    frames: Sequence[Tensor] | ArrayLike, steps: Sequence[int] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw ``frames`` ``(F, N, *event)`` of N chains, the first frame where they start.

    Images ``(C, H, W)`` are drawn as a row for each chain and a column for each frame. Points in the plane are drawn
    as a path for each chain, with a dot at its end.

    Args:
        frames: Positions of the chains in each frame.
        steps: The chain step of each frame; by default its number.
        ax: Axes to draw into.

    Raises:
        InputError: The events are neither images nor points in the plane.
    """
    x = torch.stack([torch.as_tensor(frame).detach().float().cpu() for frame in frames])  # type: ignore[union-attr]
    steps = range(len(x)) if steps is None else steps
    if x.ndim == 3 and x.shape[2] == 2:
        ax = new_axes(4, 4) if ax is None else ax
        points = x.numpy()
        ax.plot(points[:, :, 0], points[:, :, 1], color=COLORS["muted"], linewidth=0.6, alpha=0.5)
        ax.plot(points[-1, :, 0], points[-1, :, 1], ".", color=COLORS["accent"])
        ax.set(title=f"steps {steps[0]} to {steps[-1]}", aspect="equal")
        return ax
    if x.ndim != 5:
        raise InputError(f"chain_film draws images (C, H, W) or points (2,), not events of shape {tuple(x.shape[2:])}")
    pixels = tile(x.transpose(0, 1).flatten(0, 1), columns=len(x))
    wide = pixels.shape[1] / len(x)
    ax = new_axes(len(x), len(pixels) / wide) if ax is None else ax
    ax.imshow(pixels.squeeze(2).numpy(), cmap="gray", vmin=0, vmax=255)
    ax.spines[:].set_visible(False)
    ax.grid(False)
    ax.set_xticks([wide * (i + 0.5) - 0.5 for i in range(len(x))], [str(step) for step in steps])
    ax.set(yticks=[], xlabel="chain step")
    return ax
