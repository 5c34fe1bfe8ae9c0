"""Checkpoints: all that is needed to resume a run exactly, as safetensors and JSON; nothing is ever unpickled.

::

    energy.safetensors      weights, with the vectors of spectral normalization
    average.safetensors     the moving average of the weights, normalization folded in
    objective.safetensors   snapshot, pool, buffer, counters, log Z        (full checkpoints only)
    optimizer.safetensors   Adam's moments                                 (full checkpoints only)
    adversary.safetensors   those of trained noise                          (full checkpoints only)
    random.safetensors      the generator's state                          (full checkpoints only)
    ranks.safetensors       pools, buffers and generators of the processes after the first, if there were several
    state.json              the step, the seconds trained, log Z if it is learned, the checksums of the files
"""

import errno
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from adance.atomic import atomic_dir
from adance.errors import InputError
from adance.numbers import check_count, check_real
from adance.signatures import accepts
from adance.training.checksums import file_checksum, with_checksum, without_checksum

FULL_KEPT = 2
STATE = "state.json"
WEIGHTS = ("energy.safetensors", "average.safetensors", STATE)


def save_tensors(state: dict[str, Any], path: Path) -> None:
    """Write the tensors of a state dictionary; tied tensors are written twice.

    Raises:
        OSError: The file cannot be written.
    """
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # safetensors has its own class for errors of the operating system
        found = re.search(r"os error (\d+)", str(error))
        number = int(found[1]) if found else errno.EIO
        raise OSError(number, os.strerror(number), str(path)) from None


def load_tensors(path: Path, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """Read tensors by name.

    Raises:
        InputError: The file is missing or broken, or does not match its checksum in the checkpoint's ``state.json``.
    """
    try:
        tensors: dict[str, Tensor] = load_file(path, device=str(device))
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if (path.parent / STATE).exists():
        expected = read_state(path.parent)["checksums"].get(path.name)
        if expected is not None and expected != file_checksum(path):
            raise InputError(f"{path} is damaged: it does not match its checksum in {STATE}; use an earlier checkpoint")
    return tensors


def load_weights(module: nn.Module, path: Path, replaced: Mapping[str, Tensor] | None = None) -> None:
    """Load the state of ``module`` from a file; the tensors in ``replaced`` replace those of the same name.

    Raises:
        InputError: The file is missing or broken, or its names or shapes do not fit the module.
    """
    state: dict[str, Any] = {**load_tensors(path), **(replaced or {})}
    try:
        module.load_state_dict(state)
    except ValueError:
        name = type(module).__name__
        raise InputError(
            f"{path} was written by another version of adance, whose {name} stores different tensors"
        ) from None
    except RuntimeError as error:
        _check_spectral_norm(state, module, path)
        raise InputError(f"{path} does not fit the {type(module).__name__}: {' '.join(str(error).split())}") from None


def _check_spectral_norm(state: dict[str, Tensor], module: nn.Module, path: Path) -> None:
    """Raise an :class:`InputError` if either the checkpoint or the module has spectral normalization, but not both."""
    stored, own = (any(name.endswith("._u") for name in names) for names in (state, module.state_dict()))
    if stored != own:
        has, lacks = ("has", "does not") if stored else ("has no", "does")
        name = type(module).__name__
        raise InputError(f"{path} {has} spectral normalization, but the {name} {lacks}: set spectral_norm={stored}")


def save_checkpoint(path: Path, tensors: dict[str, dict[str, Tensor]], state: dict[str, Any]) -> None:
    """Write one checkpoint: a file for each name in ``tensors``, and ``state.json``."""
    with atomic_dir(path) as part:
        for name, values in tensors.items():
            save_tensors(values, part / f"{name}.safetensors")
        checksums = {file.name: file_checksum(file) for file in sorted(part.iterdir())}
        (part / STATE).write_text(with_checksum({**state, "checksums": checksums}), encoding="utf-8")


def read_state(path: Path) -> dict[str, Any]:
    """Read the ``state.json`` of a checkpoint: the numbers of training, and ``checksums`` of the other files.

    Raises:
        InputError: The file is missing or broken, or a number has the wrong type or does not match the folder.
    """
    file = path / STATE
    try:
        state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read {file}: {error}") from None
    if not isinstance(state, dict) or not {"step", "seconds", "log_normalizer"} <= state.keys():
        raise InputError(f"{file} must contain step, seconds and log_normalizer")
    state = without_checksum(state, file)
    state = {"chain_runs": None, "scales": None, "checksums": {}, **state}
    check_count(f"{file}: step", state["step"], least=0)
    check_real(f"{file}: seconds", state["seconds"], 0.0)
    for name, least in (("log_normalizer", -math.inf), ("chain_runs", 0.0)):
        if state[name] is not None:
            check_real(f"{file}: {name}", state[name], least)
    if state["scales"] is not None and not accepts(tuple[float, float], state["scales"]):
        raise InputError(f"{file}: scales must be two numbers, got {state['scales']!r}")
    if not isinstance(state["checksums"], dict):
        raise InputError(f"{file}: checksums must be a mapping of file names to numbers, got {state['checksums']!r}")
    if state["step"] != int(path.name):
        raise InputError(f"{file}: step is {state['step']}, but the folder is named {path.name}")
    return state


def thin_out(checkpoints: list[Path]) -> None:
    """Keep the last two of these checkpoints, oldest first, in full, and only the weights of the others."""
    for path in checkpoints[:-FULL_KEPT]:
        for file in path.iterdir():
            if file.name not in WEIGHTS:
                file.unlink()


def is_full(path: Path) -> bool:
    """Whether training can resume from this checkpoint."""
    return all((path / f"{name}.safetensors").exists() for name in ("energy", "objective", "optimizer", "random"))
