"""Checkpoints: all that is needed to resume a run exactly, as safetensors and JSON; nothing is ever unpickled.

::

    energy.safetensors      weights, with the vectors of spectral normalization
    average.safetensors     the moving average of the weights, normalization folded in
    objective.safetensors   snapshot, pool, buffer, counters, log Z        (full checkpoints only)
    optimizer.safetensors   Adam's moments                                 (full checkpoints only)
    adversary.safetensors   those of trained noise                          (full checkpoints only)
    random.safetensors      the generator's state                          (full checkpoints only)
    ranks.safetensors       pools, buffers and generators of the processes after the first, if there were several
    state.json              the step, the seconds trained, log Z if it is learned
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from adance.atomic import atomic_dir
from adance.errors import InputError
from adance.numbers import check_real

FULL_KEPT = 2
WEIGHTS = ("energy.safetensors", "average.safetensors", "state.json")


def save_tensors(state: dict[str, Any], path: Path) -> None:
    """Write the tensors of a state dictionary; tied tensors are written twice."""
    save_file({name: value.detach().cpu().contiguous().clone() for name, value in state.items()}, path)


def load_tensors(path: Path, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """Read tensors by name.

    Raises:
        InputError: The file is missing or broken.
    """
    try:
        return load_file(path, device=str(device))
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def load_weights(module: nn.Module, path: Path, replaced: Mapping[str, Tensor] | None = None) -> None:
    """Read the state of ``module`` from a file, but take the tensors in ``replaced`` from there.

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
        raise InputError(f"{path} does not fit the {type(module).__name__}: {' '.join(str(error).split())}") from None


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state as named tensors, ``<parameter's number>.<name>``."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": value for index, values in state.items() for name, value in values.items()}


def load_optimizer(optimizer: torch.optim.Optimizer, path: Path) -> None:
    """Read the tensors of :func:`optimizer_tensors` from a file.

    Raises:
        InputError: The file is missing or broken, or does not fit the optimizer's parameters.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    shapes = {
        str(index): {"step": torch.Size(), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}
        for index, parameter in enumerate(parameters)
    }
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in load_tensors(path).items():
        index, _, key = name.partition(".")
        if shapes.get(index, {}).get(key) != value.shape:
            raise InputError(f"{path} does not fit the energy's weights: {name} has shape {tuple(value.shape)}")
        state.setdefault(int(index), {})[key] = value
    if any(len(values) != 3 for values in state.values()):
        raise InputError(f"{path} does not fit the energy's weights: some of Adam's moments are missing")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def save_checkpoint(path: Path, tensors: dict[str, dict[str, Tensor]], state: dict[str, Any]) -> None:
    """Write one checkpoint: a file for each name in ``tensors``, and ``state.json``."""
    with atomic_dir(path) as part:
        for name, values in tensors.items():
            save_tensors(values, part / f"{name}.safetensors")
        (part / "state.json").write_text(json.dumps(state) + "\n")


def read_state(path: Path) -> dict[str, Any]:
    """The numbers of a checkpoint: ``step``, ``seconds``, ``log_normalizer`` and ``chain_runs``.

    Raises:
        InputError: The file is missing or broken.
    """
    try:
        state: dict[str, Any] = json.loads((path / "state.json").read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path / 'state.json'}: {error}") from None
    if not isinstance(state, dict) or not {"step", "seconds", "log_normalizer"} <= state.keys():
        raise InputError(f"{path / 'state.json'} must contain step, seconds and log_normalizer")
    for name, least in (("step", 0), ("seconds", 0.0)):
        check_real(f"{path / 'state.json'}: {name}", state[name], least)
    check_real(f"{path / 'state.json'}: log_normalizer", state["log_normalizer"] or 0.0)
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
