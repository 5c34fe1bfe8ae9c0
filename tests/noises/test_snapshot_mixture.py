import copy

import pytest
import torch

from adance.energies import MLP
from adance.errors import InputError
from adance.noises import SnapshotMixture
from adance.samplers import MALA, Langevin
from adance.samplers.starts import ChainStarts

DATA = torch.randn(16, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


def seed(number=1):
    return torch.Generator().manual_seed(number)


def mixture(energy, snapshots=3, pool=12, sampler=None):
    noise = SnapshotMixture(sampler or MALA(steps=2), ChainStarts("noise"), 1, pool, snapshots)
    noise.prepare(energy, DATA, 4, seed())
    return noise


def move(energy, number):
    with torch.no_grad():
        for parameter in energy.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=seed(number), dtype=parameter.dtype)


def net():
    return MLP((2,), (8,)).double()


def test_energy_is_of_the_last_snapshots_in_equal_parts():
    energy, history = net(), []
    noise = mixture(energy)
    history.append(copy.deepcopy(energy))
    for step in range(1, 6):
        noise.draw(4, DATA, seed(step))
        move(energy, step)
        noise.after_step(energy, step)
        history.append(copy.deepcopy(energy))
        with torch.no_grad():
            parts = torch.stack([(-past(DATA)).exp() for past in history[-3:]])
            torch.testing.assert_close(noise.energy(DATA, DATA[:, 0]), -parts.mean(0).log())


def test_equal_snapshots_are_the_model_exactly():
    energy = net()
    noise = mixture(energy, sampler=Langevin(2, 0.1, temperature=1e-5))
    for step in (1, 2):
        noise.draw(4, DATA, seed(step))
        noise.after_step(energy, step)
    assert torch.equal(noise.energy(DATA, DATA[:, 0]), energy(DATA))


def test_all_pools_are_drawn_from_without_repeats():
    energy = net()
    noise = mixture(energy)
    pools = []
    for step in range(1, 5):
        noise.draw(4, DATA, seed(step))
        pools.append(noise.pool.samples[: noise.pool_size].clone())
        noise.after_step(energy, step)
    drawn = torch.cat([noise.draw(4, DATA, seed(9)) for _ in range(9)])
    kept = torch.cat([noise.pool.samples[: noise.pool_size], *pools[-2:]])
    assert {tuple(row) for row in drawn.tolist()} == {tuple(row) for row in kept.tolist()}
    assert len(drawn.unique(dim=0)) == 36


def test_a_snapshot_that_was_never_drawn_from_is_dropped():
    energy = net()
    noise = mixture(energy)
    noise.after_step(energy, 1)
    noise.after_step(energy, 2)
    assert noise._kept == 0


def test_state_goes_on_exactly():
    energy = net()
    one = mixture(energy)
    for step in range(1, 4):
        one.draw(4, DATA, seed(step))
        move(energy, step)
        one.after_step(energy, step)
    one.draw(4, DATA, seed(8))
    two = mixture(net())
    two.load_state_dict(one.state_dict())
    assert torch.equal(one.energy(DATA, DATA[:, 0]), two.energy(DATA, DATA[:, 0]))
    for _ in range(12):
        assert torch.equal(one.draw(4, DATA, seed(3)), two.draw(4, DATA, seed(3)))


def test_bad_settings_are_refused():
    for settings in ({"snapshots": 1}, {"pool": 0}):
        with pytest.raises(InputError):
            SnapshotMixture(None, ChainStarts("noise"), **settings)
    with pytest.raises(InputError, match="larger"):
        mixture(net()).draw(13, DATA, seed())
