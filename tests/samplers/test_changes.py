"""A mapping instead of a sampler changes arguments of the one that the library chooses for the data."""

import pytest
import yaml

from adance.configurable import build, describe
from adance.errors import InputError
from adance.objectives import AdaNCE, ContrastiveDivergence, MaximumLikelihood, Recipe, Setting
from adance.samplers import MALA, Langevin


@pytest.mark.parametrize("made_from", [AdaNCE, MaximumLikelihood, ContrastiveDivergence])
def test_an_objective_makes_the_default_sampler_with_changes(made_from):
    recipe = made_from(sampler={"steps": 3})
    again = build(yaml.safe_load(yaml.safe_dump(describe(recipe))), Recipe)
    for made in (recipe, again):
        resolved = made.resolve(Setting((2,), 8))
        assert isinstance(resolved.sampler, MALA)
        assert resolved.sampler.steps == 3
        assert describe(resolved)["init_args"]["sampler"]["class_path"] == "adance.MALA"


def test_changes_keep_all_else():
    kernel = Langevin(steps=30, step_size=1.0, noise_std=0.005)
    assert describe(kernel.with_changes({"steps": 7})) == describe(Langevin(7, 1.0, 0.005))
    assert kernel.steps == 30
    with pytest.raises(InputError, match=r"sampler: .*stepz.* takes steps, step_size, noise_std, temperature, bounds$"):
        kernel.with_changes({"stepz": 7})
