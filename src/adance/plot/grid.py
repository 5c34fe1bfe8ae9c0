"""Images side by side: on axes, and pixel by pixel in a PNG."""

import math
from pathlib import Path

import torch
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from PIL import Image
from torch import Tensor
from torch.nn.functional import pad

from adance.plot.axes import new_axes


def samples_grid(images: ArrayLike | Tensor, *, columns: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw ``images`` ``(N, C, H, W)`` in [−1, 1], C of 1 or 3, as a grid, by default a square one."""
    pixels = tile(torch.as_tensor(images), columns)
    ax = new_axes(5, 5 * len(pixels) / pixels.shape[1]) if ax is None else ax
    ax.imshow(pixels.squeeze(2).numpy(), cmap="gray", vmin=0, vmax=255)
    ax.set_axis_off()
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
