"""Reads the parts that training is built from out of the folder of a run that is resumed."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from torch import nn

from adance.data.dataset import Dataset
from adance.objectives.objective import Recipe
from adance.randomness import fork_rng
from adance.training.config import data_of, energy_of, in_config, objective_of, settings_of
from adance.training.run_folder import RunFolder
from adance.training.schedule import warn_of_new_steps
from adance.training.settings import Settings


@dataclass(frozen=True, eq=False)
class HeldRun:
    """The parts of a run, with changed settings.

    Attributes:
        energy: The energy, with initial weights.
        objective: The objective.
        data: The data.
        settings: The settings of the loop.
        config: All settings, with the changes.
        has_changed: Whether there are changes.
    """

    energy: nn.Module
    objective: Recipe
    data: Dataset
    settings: Settings
    config: dict[str, Any]
    has_changed: bool


def read_run(
    folder: RunFolder, data: Dataset | None, energy: nn.Module | None, objective: Recipe | None, **changes: int | None
) -> HeldRun:
    """Read the run in ``folder``; parts that are given are not built from its config.

    Args:
        folder: The run folder.
        data: The data.
        energy: The energy.
        objective: The objective.
        **changes: New values of settings; ``None`` keeps the run's.

    Raises:
        InputError: The folder holds no run, or a part is not given and its config cannot build it.
    """
    config = folder.read_config()
    changed: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    with in_config(folder.path):
        before = settings_of(config)
    settings = dataclasses.replace(before, **changed)
    warn_of_new_steps(before, settings.steps)
    data = data or data_of(config)
    with fork_rng(settings.seed), in_config(folder.path):
        energy, objective = energy or energy_of(config, data.event_shape), objective or objective_of(config)
    return HeldRun(energy, objective, data, settings, {**config, **changed}, bool(changed))
