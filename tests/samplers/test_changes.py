"""A mapping instead of a sampler changes arguments of the one that the library chooses for the data."""

import pytest
import torch
import yaml

from adance.configurable import build, describe
from adance.energies import MLP
from adance.errors import InputError
from adance.objectives import AdaNCE, ContrastiveDivergence, MaximumLikelihood, Objective
from adance.samplers import MALA, Langevin
from adance.samplers.defaults import with_changes


@pytest.mark.parametrize("made_from", [AdaNCE, MaximumLikelihood, ContrastiveDivergence])
def test_an_objective_makes_the_default_sampler_with_changes(made_from):
    objective = made_from(sampler={"steps": 3})
    assert objective.sampler is None
    again = build(yaml.safe_load(yaml.safe_dump(describe(objective))), Objective)
    for made in (objective, again):
        made.prepare(MLP((2,), (4,)), torch.randn(8, 2))
        assert isinstance(made.sampler, MALA)
        assert made.sampler.steps == 3
        assert describe(made)["init_args"]["sampler"]["class_path"] == "adance.MALA"


def test_changes_keep_all_else():
    kernel = Langevin(steps=30, step_size=1.0, noise_std=0.005)
    assert describe(with_changes(kernel, {"steps": 7})) == describe(Langevin(7, 1.0, 0.005))
    assert kernel.steps == 30
    with pytest.raises(InputError, match=r"sampler: .*stepz.* takes steps, step_size, noise_std, temperature, bounds$"):
        with_changes(kernel, {"stepz": 7})
