"""Trained runs that come with the package."""

from importlib.resources import as_file, files
from pathlib import Path

import torch

from adance.atomic import copy_dir
from adance.errors import InputError
from adance.near import did_you_mean
from adance.training.loading import load
from adance.training.run import Run

PREFIX = "pretrained:"
"""Prefix of a path argument of a command that names a pretrained run."""

FOLDERS = files("adance") / "pretrained"


def pretrained_names() -> list[str]:
    """The names of all runs that come with the package."""
    return sorted(folder.name for folder in FOLDERS.iterdir() if folder.is_dir())


def load_pretrained(name: str, *, device: str | torch.device = "cpu") -> Run:
    """Open a run that comes with the package, such as ``digits``: its energy, and all that sampling needs.

    Weights are stored with 16 bits. The training data and the state of training are not included.

    Args:
        name: One of :func:`pretrained_names`.
        device: The device of the energy.

    Raises:
        InputError: There is no run of this name.
    """
    _check(name)
    with as_file(FOLDERS / name) as folder:
        return load(folder, device=device)


def copy_pretrained(name: str, parent: str | Path = "runs") -> Path:
    """The run folder ``<parent>/pretrained-<name>``, which the first call copies so that commands can write in it.

    Raises:
        InputError: There is no run of this name, or the copy cannot be written.
    """
    _check(name)
    path = Path(parent, f"pretrained-{name}")
    try:
        with as_file(FOLDERS / name) as folder:
            copy_dir(folder, path)
    except OSError as error:
        raise InputError(f"cannot copy the pretrained run to {path}: {error.strerror}") from None
    return path


def _check(name: str) -> None:
    names = pretrained_names()
    if name not in names:
        raise InputError(
            f"there is no pretrained run {name!r}{did_you_mean(name, names)}. Available: {', '.join(names)}"
        )
