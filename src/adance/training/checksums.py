"""Checksums that detect damage to the files of a run; safetensors and JSON have none of their own."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adance.errors import InputError

KEY = "crc32"
CHUNK = 1 << 20


def with_checksum(content: Mapping[str, Any]) -> str:
    """``content`` and its checksum as a line of JSON."""
    return json.dumps({**content, KEY: _of(content)}) + "\n"


def without_checksum(held: dict[str, Any], path: Path) -> dict[str, Any]:
    """Check ``held``, the content of the JSON file at ``path``, against its checksum if it has one, and remove that.

    Raises:
        InputError: The content does not match the checksum.
    """
    content = intact(held)
    if content is None:
        raise InputError(
            f"{path} is damaged: its content does not match its checksum; to use it anyway, delete the key {KEY}"
        )
    return content


def intact(held: dict[str, Any]) -> dict[str, Any] | None:
    """``held`` without its checksum, or ``None`` if it does not match; content without a checksum is accepted."""
    content = {name: value for name, value in held.items() if name != KEY}
    return content if KEY not in held or held[KEY] == _of(content) else None


def file_checksum(path: Path) -> int:
    """The checksum of a file."""
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            checksum = zlib.crc32(chunk, checksum)
    return checksum


def _of(content: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())
