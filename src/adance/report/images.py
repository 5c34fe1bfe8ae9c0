"""Pictures as data URIs, so that the page needs nothing beside it."""

import base64
import io
import math
from pathlib import Path

import torch
from PIL import Image, features
from torch import Tensor

QUALITY, GAP = 80, 4


def grid_uri(images: Tensor, side: int) -> str:
    """A square grid of ``images`` ``(N, C, H, W)`` in [−1, 1], C of 1 or 3, about ``side`` pixels wide, as a data URI.

    Each image is enlarged smoothly by itself; between them the ground shows.
    """
    columns = math.ceil(math.sqrt(len(images)))
    n, _, height, width = images.shape
    factor = max(1, side // (columns * width))
    high, wide = height * factor + GAP, width * factor + GAP
    grid = Image.new("RGBA", (columns * wide - GAP, math.ceil(n / columns) * high - GAP))
    pixels = ((images.detach().float().cpu().clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8).permute(0, 2, 3, 1)
    for place, image in enumerate(pixels):
        tile = Image.fromarray((image[:, :, 0] if image.shape[2] == 1 else image).numpy())
        tile = tile.resize((width * factor, height * factor), Image.Resampling.BICUBIC)
        grid.paste(tile.convert("RGBA"), (place % columns * wide, place // columns * high))
    return uri(grid)


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
