"""Files and folders that are written whole or not at all: aside first, then to disk, then renamed."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes ``path`` when the block ends well.

    Raises:
        OSError: It cannot be written.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    if path.exists() and not path.is_file():  # a device: the last step would put a file in its place
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield aside
        _to_disk(aside)
        aside.replace(path)
        _to_disk(path.parent)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which becomes ``path``, where nothing may be yet, when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        yield aside
        for file in aside.iterdir():
            _to_disk(file)
        _to_disk(aside)
        aside.rename(path)
        _to_disk(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
