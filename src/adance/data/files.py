"""Arrays of NumPy's .npz and .npy files, without unpickling; sizes are checked before anything is read."""

import math
import os
import warnings
from pathlib import Path
from typing import IO
from zipfile import ZipFile, is_zipfile

import numpy as np
from numpy.lib import format as npy

from adance.data.checks import Array
from adance.errors import InputError

_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_NO_PICKLE = "dtype is object, or it is not a NumPy file; pickled objects are not loaded: save plain numeric arrays"


class ArrayFile:
    """The arrays of a file, by name; the one of an .npy is called "" and stays on disk.

    Raises:
        InputError: The file is not a NumPy file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.zipped, names = is_zipfile(path), [""]
            if self.zipped:
                with ZipFile(path) as file:
                    names = file.namelist()
        except Exception as error:
            raise _unreadable(path, "", error) from None
        self.members = {name.removesuffix(".npy"): name for name in names}

    def read(self, names: list[str]) -> dict[str, Array]:
        """The arrays with these names.

        Raises:
            InputError: An array cannot be read or is shorter than its header says, or the arrays do not fit in memory.
        """
        if not self.zipped:
            return {"": self._map()}
        arrays, key = {}, ""
        try:
            with ZipFile(self.path) as archive:
                total = sum(archive.getinfo(self.members[name]).file_size for name in names)
                if total > memory():
                    raise InputError(
                        f"{self.path}: unpacks to {total:,} bytes, more than this machine's memory of {memory():,}: "
                        "save the rows as .npy, which is read row by row"
                    )
                for key in names:
                    with archive.open(self.members[key]) as member:
                        _check_header(member, archive.getinfo(self.members[key]).file_size, where(self.path, key))
                    with archive.open(self.members[key]) as member:
                        arrays[key] = npy.read_array(member, allow_pickle=False)
        except Exception as error:
            raise _unreadable(self.path, key, error) from None
        return arrays

    def _map(self) -> Array:
        try:
            length = os.path.getsize(self.path)
            with self.path.open("rb") as file:
                unused = _check_header(file, length, str(self.path))
            array = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except Exception as error:
            raise _unreadable(self.path, "", error) from None
        if unused:
            warnings.warn(f"{self.path}: not used: {unused} bytes after the array", stacklevel=5)
        return array  # type: ignore[no-any-return]


def _check_header(file: IO[bytes], length: int, name: str) -> int:
    """Check that a file or member of ``length`` bytes is as long as its header says; return the number of extra bytes.

    Raises:
        InputError: It is shorter.
    """
    reader = _READERS.get(npy.read_magic(file))
    if reader is None:
        return 0
    shape, _, dtype = reader(file)
    needed, held = math.prod(shape) * dtype.itemsize, length - file.tell()
    if needed > held and not dtype.hasobject:
        raise InputError(
            f"{name}: its header says shape {shape} of {dtype}, {needed:,} bytes, but only {held:,} follow: "
            "the file is truncated or corrupt"
        )
    return 0 if dtype.hasobject else held - needed


def memory() -> int:
    """Bytes of memory of this machine; 16 GiB if the system does not say."""
    if not hasattr(os, "sysconf"):
        return 2**34
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def where(path: Path, key: str) -> str:
    """Name of an array of a file in messages."""
    return f"{path}[{key!r}]" if key else str(path)


def _unreadable(path: Path, key: str, error: Exception) -> InputError:
    """The error for an unusable file, from an error of NumPy, zipfile, zlib, struct or ast."""
    if isinstance(error, InputError):
        return error
    reason = " ".join(str(error).split())
    if any(words in reason for words in ("Object arrays", "Python objects", "magic string")):
        reason = _NO_PICKLE
    elif "malformed node" in reason:
        reason = "its header does not describe an array"
    return InputError(f"{where(path, key)}: cannot be read as a NumPy array: {reason:.300}")
