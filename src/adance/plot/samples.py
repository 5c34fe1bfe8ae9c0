"""Samples and chains as pictures: images side by side, on axes or pixel by pixel in a PNG, and chains at some steps."""

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from PIL import Image
from torch import Tensor
from torch.nn.functional import pad

from adance.errors import InputError
from adance.plot.axes import COLORS, new_axes


def samples_grid(images: ArrayLike | Tensor, *, columns: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw ``images`` ``(N, C, H, W)`` in [−1, 1], C of 1 or 3, as a grid, by default a square one."""
    pixels = tile(torch.as_tensor(images), columns)
    ax = new_axes(5, 5 * len(pixels) / pixels.shape[1]) if ax is None else ax
    ax.imshow(pixels.squeeze(2).numpy(), cmap="gray", vmin=0, vmax=255)
    ax.set_axis_off()
    return ax


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


def save_grid(images: Tensor, path: Path, columns: int | None = None, height: int = 640) -> None:
    """Write ``images`` ``(N, C, H, W)`` in [−1, 1], C of 1 or 3, as a grid, enlarged smoothly by a whole factor.

    Args:
        images: The images; values outside the range are clamped.
        path: The PNG to write.
        columns: Images in a row; by default as square a grid as possible.
        height: The picture is enlarged while it stays below this many pixels, at least once.
    """
    picture = to_picture(tile(images, columns))
    factor = max(1, height // picture.height)
    picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.BICUBIC).save(path, format="PNG")


def tile(images: Tensor, columns: int | None = None, frame: int = 1, value: float = 1.0) -> Tensor:
    """The bytes ``(H', W', C)`` of ``images`` ``(N, C, H, W)`` in a grid, each in a frame of ``value``."""
    columns = columns or math.ceil(math.sqrt(len(images)))
    rows = math.ceil(len(images) / columns)
    framed = pad(images.detach().float().cpu().clamp(-1, 1), (frame,) * 4, value=value)
    missing = rows * columns - len(images)
    framed = torch.cat([framed, framed.new_full((missing, *framed.shape[1:]), value)])
    channels, h, w = framed.shape[1:]
    grid = framed.view(rows, columns, channels, h, w).permute(0, 3, 1, 4, 2).reshape(rows * h, columns * w, channels)
    return ((grid + 1) * 127.5).round().to(torch.uint8)


def to_picture(pixels: Tensor) -> Image.Image:
    """Bytes ``(H, W, C)`` as a picture."""
    return Image.fromarray(pixels.squeeze(2).numpy())
