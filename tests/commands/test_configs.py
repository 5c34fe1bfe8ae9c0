"""The configs that come with the project."""

from pathlib import Path

import pytest
import torch

from adance.commands.choices import read
from adance.objectives.objective import Setting

CONFIGS = Path(__file__).parents[2] / "configs"
SHAPES = {"mnist": (1, 28, 28), "fashion-mnist": (1, 28, 28), "cifar10": (3, 32, 32), "celeba": (3, 32, 32)}


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.yaml")), ids=lambda path: str(path.relative_to(CONFIGS)))
def test_each_names_data_and_builds_an_energy_for_them(path):
    choices = read(["--config", str(path)])
    shape = SHAPES[choices.args.data]
    energy = choices.make_energy(shape, choices.make_objective())
    assert energy(torch.zeros(2, *shape)).shape == (2,)
    settings = choices.settings
    recipe = choices.make_objective().resolve(Setting(shape, settings.batch_size, False, settings.steps))
    assert "None" not in str(recipe)
