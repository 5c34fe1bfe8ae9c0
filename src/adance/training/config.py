"""The config of a run, as in its ``config.yaml``: all that is needed to train again."""

import dataclasses
import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from adance.configurable import build, class_path, describe
from adance.data.dataset import Dataset
from adance.data.load import load_data
from adance.energies.conditional import takes_condition
from adance.errors import InputError
from adance.objectives.objective import Recipe, Setting
from adance.objectives.tilt import blank_base
from adance.registry import find_class
from adance.samplers.kernel import Kernel
from adance.training.settings import Settings

DATA_KEYS = {"data": "source", "data_seed": "seed", "held_out": "held_out", "image_size": "image_size"}
"""Names in the config, and the arguments of ``load_data`` that they set."""

FIELDS = tuple(field.name for field in dataclasses.fields(Settings))


def make_config(data: Dataset, energy: nn.Module, objective: Recipe, settings: Settings) -> dict[str, Any]:
    """The config of a run with these parts, as plain values; warns if it cannot describe a part.

    Raises:
        InputError: The config cannot describe the kernel of the objective's chains.
    """
    source = data.source or {"source": None}  # data in memory
    described = _describe(energy, "energy", "adance.load(folder, energy=...)")
    shape_name, arguments = _shape_name(type(energy)), described["init_args"] or {}
    if shape_name is not None and arguments.get(shape_name) == list(data.event_shape):
        del arguments[shape_name]
    settings = dataclasses.replace(settings, adversary_lr=settings.adversary_lr or settings.lr)
    return {
        **{name: source[argument] for name, argument in DATA_KEYS.items() if argument in source},
        "energy": described,
        "objective": _describe(objective, "objective", "adance.Trainer.resume(folder, objective=...)"),
        **{name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(settings).items()},
    }


def _describe(part: object, name: str, again: str) -> dict[str, Any]:
    """The class and arguments of ``part``; if it did not record its arguments, only its class, with a warning."""
    path, reason = class_path(type(part)), ""
    try:
        described = describe(part)
        if path.startswith("__main__."):
            reason = "its class is defined in the script itself, which other programs cannot import"
    except InputError as error:
        described, reason = {"class_path": path, "init_args": None}, str(error)
    if reason:
        warnings.warn(
            f"config.yaml cannot rebuild the {name}: {reason}. To open the run, pass it: {again}", stacklevel=5
        )
    return described


def settings_of(config: Mapping[str, Any]) -> Settings:
    """The settings in a config, with defaults for those that are missing.

    Raises:
        InputError: A setting is out of its range or has the wrong type.
    """
    given: dict[str, Any] = {name: config[name] for name in FIELDS if name in config}
    try:
        if isinstance(given.get("betas"), list):
            given["betas"] = tuple(given["betas"])
        return Settings(**given)
    except TypeError as error:
        raise InputError(f"the run's config has a setting of the wrong type: {error}") from None


@contextmanager
def in_config(folder: Path) -> Iterator[None]:
    """Let errors in this block name the config of the run in ``folder``.

    Raises:
        InputError: Raised in the block; the message then names the config.
    """
    try:
        yield
    except InputError as error:
        prefix = "" if "config.yaml" in str(error) else f"{folder / 'config.yaml'}: "
        raise InputError(f"{prefix}{error}") from None


def energy_of(config: Mapping[str, Any], event_shape: Sequence[int]) -> nn.Module:
    """A fresh energy for events of this shape.

    Raises:
        InputError: The config does not say how to build it, or its class refuses the arguments.
    """
    described = _known(config, "energy", "adance.load(folder, energy=...)")
    shape_name = _shape_name(find_class(described.get("class_path"), nn.Module))
    shape = {} if shape_name is None else {shape_name: list(event_shape)}
    args = shape | (described.get("init_args") or {})
    return build({**described, "init_args": args}, nn.Module)


def complete_energy(energy: nn.Module, config: Mapping[str, Any], event_shape: Sequence[int]) -> None:
    """Give an energy from :func:`energy_of` every tensor that its checkpoint has.

    Raises:
        InputError: The objective refuses its arguments.
    """
    known = config["objective"].get("init_args", {}) is not None
    blank_base(energy, objective_of(config).noise_recipe if known else None, tuple(event_shape))


def objective_of(config: Mapping[str, Any]) -> Recipe:
    """A fresh objective.

    Raises:
        InputError: The config does not say how to build it, or its class refuses the arguments.
    """
    described = _known(config, "objective", "adance.Trainer.resume(folder, objective=...)")
    return build(described, Recipe)  # type: ignore[type-abstract]


def kernel_of(config: Mapping[str, Any], event_shape: Sequence[int], energy: nn.Module) -> Kernel | None:
    """The kernel of the objective's chains; ``None`` if there are no chains, or the config cannot build the objective.

    Raises:
        InputError: The objective refuses its arguments.
    """
    if config["objective"].get("init_args", {}) is None:
        return None
    setting = Setting(tuple(event_shape), settings_of(config).batch_size, takes_condition(energy))
    return objective_of(config).kernel(setting)


def _known(config: Mapping[str, Any], name: str, again: str) -> Mapping[str, Any]:
    described: Mapping[str, Any] = config[name]
    if described.get("init_args", {}) is None:
        raise InputError(
            f"config.yaml cannot rebuild the {name}, because {described['class_path']} did not record its arguments. "
            f"Pass the {name}: {again}"
        )
    return described


def data_of(config: Mapping[str, Any]) -> Dataset:
    """Load the data again.

    Raises:
        InputError: The data were in memory, or can no longer be loaded.
    """
    if config.get("data") is None:
        raise InputError(
            "config.yaml cannot load the data, which were in memory. Pass them: "
            "adance.Trainer.resume(folder, data=...) or adance.evaluation.evaluate_run(run, data=...)"
        )
    return load_data(**{argument: config[name] for name, argument in DATA_KEYS.items() if name in config})


def _shape_name(made_from: type) -> str | None:
    """The first argument of an energy's class, which takes the event shape; ``None`` if there are no arguments."""
    return next(iter(inspect.signature(made_from).parameters), None)
