"""Pictures as data URIs, so that the page needs nothing beside it."""

import base64
import io
import math
from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image, features
from torch import Tensor

QUALITY, GAP = 80, 4
COLUMNS = 8
"""Of the pictures of 64 images that training draws."""


def grid_uri(images: Tensor, side: int) -> str:
    """A square grid of ``images`` ``(N, C, H, W)`` in [−1, 1], C of 1 or 3, about ``side`` pixels wide, as a data URI.

    Each image is enlarged smoothly by itself; between them the ground shows.
    """
    columns = math.ceil(math.sqrt(len(images)))
    height, width = images.shape[2:]
    factor = max(1, side // (columns * width))
    pixels = ((images.detach().float().cpu().clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8).permute(0, 2, 3, 1)
    tiles = [Image.fromarray((image[:, :, 0] if image.shape[2] == 1 else image).numpy()) for image in pixels]
    size = (width * factor, height * factor)
    return uri(_tiled([tile.resize(size, Image.Resampling.BICUBIC) for tile in tiles], columns))


def saved_grid_uri(path: Path, event: Sequence[int], side: int) -> str:
    """A picture of 64 images of shape ``event`` that training drew; its white lines give way to the page's ground."""
    with Image.open(path) as picture:
        picture.load()
        whole = picture.convert("RGB")
    high, wide = event[1] + 2, event[2] + 2
    factor = whole.width // (COLUMNS * wide)
    if whole.size != (COLUMNS * wide * factor, COLUMNS * high * factor):
        return file_uri(path, side)
    corners = [(x, y) for y in range(0, whole.height, high * factor) for x in range(0, whole.width, wide * factor)]
    inner = ((wide - 1) * factor, (high - 1) * factor)
    grid = _tiled([whole.crop((x + factor, y + factor, x + inner[0], y + inner[1])) for x, y in corners], COLUMNS)
    grid.thumbnail((side, side), Image.Resampling.LANCZOS)
    return uri(grid)


def _tiled(tiles: Sequence[Image.Image], columns: int) -> Image.Image:
    wide, high = tiles[0].width + GAP, tiles[0].height + GAP
    grid = Image.new("RGBA", (columns * wide - GAP, math.ceil(len(tiles) / columns) * high - GAP))
    for place, tile in enumerate(tiles):
        grid.paste(tile.convert("RGBA"), (place % columns * wide, place // columns * high))
    return grid


def file_uri(path: Path, side: int) -> str:
    """A picture file, no larger than ``side`` pixels."""
    with Image.open(path) as picture:
        picture.load()
        small = picture.convert("L" if picture.mode == "L" else "RGB")
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return uri(small)


def alpha_uri(strength: Tensor, color: tuple[int, int, int]) -> str:
    """A field ``(H, W)`` in [0, 1] as the opacity of one colour, which suits light and dark grounds alike."""
    alpha = (strength.clamp(0, 1) * 255).round().to(torch.uint8)
    plane = torch.tensor(color, dtype=torch.uint8).expand(*alpha.shape, 3)
    return uri(Image.fromarray(torch.cat([plane, alpha[..., None]], -1).numpy()), lossless=True)


def uri(picture: Image.Image, lossless: bool = False) -> str:
    """A picture as a data URI: WebP where Pillow has it, else JPEG or PNG."""
    kind = "WEBP" if features.check("webp") else ("PNG" if lossless or picture.mode == "RGBA" else "JPEG")
    file = io.BytesIO()
    picture.save(file, format=kind, quality=QUALITY, **({"lossless": lossless} if kind == "WEBP" else {}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"
