"""A grid of small images as one PNG."""

import math
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import pad


def save_grid(images: Tensor, path: Path, columns: int | None = None, height: int = 640) -> None:
    """Write ``images`` ``(N, C, H, W)`` in [−1, 1], C of 1 or 3, as a grid, enlarged smoothly by a whole factor.

    Args:
        images: The images; values outside the range are clamped.
        path: Where the PNG goes.
        columns: Images in a row; by default as square a grid as possible.
        height: The picture is enlarged while it stays below this many pixels, at least once.
    """
    columns = columns or math.ceil(math.sqrt(len(images)))
    rows = math.ceil(len(images) / columns)
    framed = pad(images.detach().float().cpu().clamp(-1, 1), (1, 1, 1, 1), value=1.0)
    missing = rows * columns - len(images)
    framed = torch.cat([framed, framed.new_ones((missing, *framed.shape[1:]))])
    channels, h, w = framed.shape[1:]
    grid = framed.view(rows, columns, channels, h, w).permute(0, 3, 1, 4, 2).reshape(rows * h, columns * w, channels)
    pixels = ((grid + 1) * 127.5).round().to(torch.uint8)
    picture = Image.fromarray((pixels[:, :, 0] if channels == 1 else pixels).numpy())
    factor = max(1, height // picture.height)
    picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.BICUBIC).save(path, format="PNG")
