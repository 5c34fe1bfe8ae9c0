"""Atomic writes: a file or folder is written to a temporary path, flushed to disk, then renamed into place."""

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adance.errors import InputError


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces ``path`` if the block succeeds.

    Raises:
        OSError: ``path`` is a folder or a device, or cannot be written.
    """
    with _temporary(path) as part:
        yield part
        _to_disk(part)
        part.replace(path)
        _to_disk(path.parent)


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Yield a path next to ``path``, in a folder that is created if needed, and remove the file there at the end."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder", str(path))
    if path.exists() and not path.is_file():  # a device: renaming would replace it
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def output_file(path: Path) -> Iterator[Path]:
    """As :func:`atomic_write`, for a file that the user asked for.

    Raises:
        InputError: The file cannot be written.
    """
    with _refused(path), atomic_write(path) as part:
        yield part


def check_writable(path: Path) -> None:
    """Check that :func:`output_file` can write ``path``, before the work whose result it will hold.

    Raises:
        InputError: The file cannot be written.
    """
    with _refused(path), _temporary(path) as part:
        part.touch()


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {reason(error)}") from None


def reason(error: OSError) -> str:
    """Why a file cannot be written, in words."""
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return f"{error.filename} is a file, not a folder"
    return error.strerror or str(error)


@contextmanager
def atomic_dir(path: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill, which becomes ``path`` if the block succeeds.

    Raises:
        OSError: ``path`` is a non-empty folder, or cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        yield part
        for file in part.iterdir():
            _to_disk(file)
        _to_disk(part)
        part.rename(path)
        _to_disk(path.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def copy_dir(source: Path, path: Path) -> None:
    """Copy the folder ``source`` to ``path`` atomically; does nothing if ``path`` exists.

    Raises:
        OSError: The copy cannot be written.
    """
    if not path.exists():
        with atomic_dir(path) as part:
            shutil.copytree(source, part, dirs_exist_ok=True)


def _to_disk(path: Path) -> None:
    """Flush a file or folder to disk; Windows cannot open folders, and flushes only files that are open for writing."""
    on_windows = sys.platform == "win32"
    if on_windows and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if on_windows else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
