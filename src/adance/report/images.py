"""Pictures as data URIs, so that the page is one file."""

import base64
import io
import math
from pathlib import Path

import numpy as np
import torch
from PIL import Image, features
from torch import Tensor
from torch.nn.functional import interpolate

from adance.errors import InputError
from adance.plot.samples import tile, to_picture

QUALITY, HALF_GAP = 80, 2


def grid_uri(images: Tensor, side: int) -> str:
    """A square grid of ``images`` ``(N, C, H, W)`` in [−1, 1], C of 1 or 3, about ``side`` pixels wide.

    Each image is enlarged smoothly by itself; the gaps are transparent.
    """
    factor = max(1, side // (math.ceil(math.sqrt(len(images))) * images.shape[3]))
    large = interpolate(images.detach().float().cpu().clamp(-1, 1), scale_factor=factor, mode="bicubic")
    opaque = torch.cat([large.expand(-1, 3, -1, -1), torch.ones_like(large[:, :1])], 1)
    return uri(to_picture(tile(opaque, frame=HALF_GAP, value=-1.0)))


def saved_uri(path: Path, side: int) -> str:
    """What training saved at the PNG ``path``: a grid of the images in its ``.npz``, otherwise the PNG itself.

    Raises:
        InputError: The PNG is missing, or one of the files is broken.
    """
    arrays = path.with_suffix(".npz")
    try:
        x = np.load(arrays)["x"] if arrays.exists() else np.empty(0)
        if x.ndim == 4:
            return grid_uri(torch.from_numpy(x), side)
        with Image.open(path) as picture:
            small = picture.convert("RGB")
    except Exception:  # a broken file fails in NumPy, zipfile, zlib, struct or Pillow
        raise InputError(
            f"{path} or its .npz is missing, truncated or corrupt; delete it to build the report without it"
        ) from None
    small.thumbnail((2 * side, 2 * side), Image.Resampling.LANCZOS)
    return uri(small)


def alpha_uri(strength: Tensor, color: str) -> str:
    """A field ``(H, W)`` in [0, 1] as the opacity of one hex color, for light and dark backgrounds alike."""
    picture = Image.new("RGB", (strength.shape[1], strength.shape[0]), color)
    picture.putalpha(Image.fromarray((strength * 255).round().to(torch.uint8).numpy()))
    return uri(picture, lossless=True)


def uri(picture: Image.Image, lossless: bool = False) -> str:
    """A picture as a data URI: WebP if Pillow supports it, otherwise PNG."""
    kind = "webp" if features.check("webp") else "png"
    file = io.BytesIO()
    picture.save(file, format=kind, quality=QUALITY, lossless=lossless)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
