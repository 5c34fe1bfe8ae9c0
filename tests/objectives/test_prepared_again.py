"""One objective for one run after the other: what is not given is settled anew for every data set."""

import pytest
import torch

from adance.configurable import describe
from adance.energies import MLP
from adance.objectives import ACE, AdaBRM, AdaNCE, ContrastiveDivergence, MaximumLikelihood, PersistentCD
from adance.samplers import MALA, Langevin

MAKERS = {
    "AdaNCE": lambda: AdaNCE(interval=10, buffer=64),
    "AdaBRM": lambda: AdaBRM(interval=10, buffer=64),
    "mixture": lambda: AdaNCE(interval=10, buffer=64, snapshots=2),
    "MaximumLikelihood": lambda: MaximumLikelihood(buffer=64),
    "ContrastiveDivergence": lambda: ContrastiveDivergence(2),
    "PersistentCD": lambda: PersistentCD(2),
}


def data(*event_shape):
    return torch.rand(32, *event_shape, generator=torch.Generator().manual_seed(0))


def prepare(objective, x, batch):
    energy = MLP(tuple(x.shape[1:]), (4,))
    objective.prepare(energy, x, batch, torch.Generator().manual_seed(1))
    return energy


@pytest.mark.parametrize("name", MAKERS)
def test_sampler_and_pool_are_those_of_the_present_data(name):
    objective = MAKERS[name]()
    energy = prepare(objective, data(1, 4, 4), 8)
    assert isinstance(objective.sampler, Langevin)
    assert describe(objective)["init_args"]["sampler"]["class_path"] == "adance.Langevin"
    objective.loss(energy, data(1, 4, 4)[:8], torch.Generator().manual_seed(2))
    objective.after_step(energy, 1)
    prepare(objective, data(3), 16)
    assert isinstance(objective.sampler, MALA)
    assert describe(objective)["init_args"]["sampler"]["class_path"] == "adance.MALA"
    fresh = MAKERS[name]()
    prepare(fresh, data(3), 16)
    assert objective.noise.pool_size == fresh.noise.pool_size == 16
    assert objective.noise.sampler.steps == fresh.noise.sampler.steps
    assert objective.noise.starts.rejuvenation == fresh.noise.starts.rejuvenation
    assert torch.equal(objective.noise.get_extra_state().nan_to_num(-1), fresh.noise.get_extra_state().nan_to_num(-1))


def test_what_is_given_stays():
    sampler = MALA(steps=3)
    objective = AdaNCE(sampler, interval=10, pool=20, buffer=64)
    for batch in (8, 16):
        prepare(objective, data(3), batch)
        assert objective.sampler is sampler
        assert objective.noise.pool_size == 20


def test_the_neural_sampler_has_the_present_event_s_dimension():
    objective = ACE(hidden=(4,), marginal_draws=4)
    for dimension in (5, 2):
        prepare(objective, data(dimension), 8)
        assert objective.noise.latent == dimension
