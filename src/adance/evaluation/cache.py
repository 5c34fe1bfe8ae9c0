"""Tensors that are kept between evaluations, by content, in the user's cache folder."""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adance.atomic import atomic_write
from adance.data.rows import AnyRows, LazyRows, chunks


def content_key(*parts: AnyRows | bytes | str | dict[str, Any] | int | None) -> str:
    """A name (64 hexadecimal digits, SHA-256) that changes whenever any part does; a tensor's shape and type count."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Tensor | LazyRows):
            digest.update(f"{part.dtype} {tuple(part.shape)}".encode())
            for rows in chunks(part):
                digest.update(rows.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        else:
            digest.update(part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def file_key(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cached_tensors(kind: str, key: str, compute: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """The tensors of a kind and key, which are computed and written if their file does not exist or is corrupt.

    The file is in the folder ``kind`` of ``$XDG_CACHE_HOME/adance``, by default ``~/.cache/adance``. It is written
    atomically; if it cannot be written, or the user has no home folder, there is no error.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load, save_file

    try:
        path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "adance", kind, f"{key}.safetensors")
    except RuntimeError:  # the user has no home folder
        return compute()
    try:
        return load(path.read_bytes())  # not mapped: a file that changes on disk must not change what was read
    except (OSError, SafetensorError):
        tensors = {name: tensor.contiguous() for name, tensor in compute().items()}
    with suppress(OSError, SafetensorError), atomic_write(path) as aside:
        save_file(tensors, aside)
    return tensors
