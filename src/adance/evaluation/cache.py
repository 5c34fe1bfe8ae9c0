"""Tensors that are kept between evaluations, by content, in the user's cache folder."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adance.atomic import atomic_write


def cache_folder(*parts: str) -> Path:
    """``$XDG_CACHE_HOME/adance/…``, by default ``~/.cache/adance/…``; it may not exist yet."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root, "adance", *parts)


def content_key(*parts: Tensor | bytes | str | dict[str, Any] | int | None) -> str:
    """A name (64 hexadecimal digits, SHA-256) that changes whenever any part does; a tensor's shape and type count."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Tensor):
            digest.update(f"{part.dtype} {tuple(part.shape)}".encode())
            digest.update(part.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        else:
            digest.update(part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def file_key(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_tensors(path: Path) -> dict[str, Tensor] | None:
    """The tensors in a file; ``None`` if it does not exist or is corrupt."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(path.read_bytes())  # not mapped: a file that changes on disk must not change what was read
    except (OSError, SafetensorError):
        return None


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write ``tensors`` to ``path`` atomically; a cache that cannot be written is skipped without an error."""
    from safetensors.torch import save_file

    try:
        with atomic_write(path) as aside:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, aside)
    except OSError:
        return
