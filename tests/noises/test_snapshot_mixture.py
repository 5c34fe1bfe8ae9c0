import copy

import pytest
import torch
from snapshots import UNSEEN, snapshot

from adance.energies import MLP
from adance.errors import InputError
from adance.objectives import AdaNCE
from adance.samplers import MALA, Langevin

DATA = torch.randn(16, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


def seed(number=1):
    return torch.Generator().manual_seed(number)


def mixture(energy, snapshots=3, pool=12, sampler=None):
    settings = {"batch": 4, "start": "noise", "pool": pool, "snapshots": snapshots, "generator": seed()}
    return snapshot(energy, DATA, sampler or MALA(steps=2), **settings)


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
        noise.sample(4, DATA, seed(step))
        move(energy, step)
        noise.after_step(energy, step, UNSEEN)
        history.append(copy.deepcopy(energy))
        with torch.no_grad():
            parts = torch.stack([(-past(DATA)).exp() for past in history[-3:]])
            torch.testing.assert_close(noise.energy(DATA), -parts.mean(0).log())


def test_equal_snapshots_are_the_model_exactly():
    energy = net()
    noise = mixture(energy, sampler=Langevin(2, 0.1, temperature=1e-5))
    for step in (1, 2):
        noise.sample(4, DATA, seed(step))
        noise.after_step(energy, step, UNSEEN)
    assert torch.equal(noise.energy(DATA), energy(DATA))


def test_a_mixture_is_not_the_model_even_when_it_is_refreshed_at_every_step():
    energy = net()
    assert mixture(energy, snapshots=1).sample(4, DATA, seed()).from_model
    assert not mixture(energy, snapshots=3).sample(4, DATA, seed()).from_model


def test_all_pools_are_drawn_from_without_repeats():
    energy = net()
    noise = mixture(energy)
    pools = []
    for step in range(1, 5):
        noise.sample(4, DATA, seed(step))
        pools.append(noise.pool.samples[: noise.pool_size].clone())
        noise.after_step(energy, step, UNSEEN)
    drawn = torch.cat([noise.sample(4, DATA, seed(9)).x for _ in range(9)])
    kept = torch.cat([noise.pool.samples[: noise.pool_size], *pools[-2:]])
    assert {tuple(row) for row in drawn.tolist()} == {tuple(row) for row in kept.tolist()}
    assert len(drawn.unique(dim=0)) == 36


def test_a_snapshot_that_was_never_drawn_from_is_dropped():
    energy = net()
    noise = mixture(energy)
    noise.after_step(energy, 1, UNSEEN)
    noise.after_step(energy, 2, UNSEEN)
    assert noise._kept == 0


def test_state_goes_on_exactly():
    energy = net()
    one = mixture(energy)
    for step in range(1, 4):
        one.sample(4, DATA, seed(step))
        move(energy, step)
        one.after_step(energy, step, UNSEEN)
    one.sample(4, DATA, seed(8))
    two = mixture(net())
    two.load_state_dict(one.state_dict())
    assert torch.equal(one.energy(DATA), two.energy(DATA))
    for _ in range(12):
        assert torch.equal(one.sample(4, DATA, seed(3)).x, two.sample(4, DATA, seed(3)).x)


@pytest.mark.parametrize("snapshots", [1, 3])
def test_a_finished_run_that_gets_more_steps_draws_from_a_new_pool(snapshots):
    settings = {"batch": 4, "start": "noise", "pool": 12, "snapshots": snapshots, "interval": 5, "finish": 0.3}
    energy = net()

    def train(noise, steps):
        for step in steps:
            drawn = noise.sample(4, DATA, seed(step))
            x = torch.cat([DATA, drawn.x])
            if drawn.taken:
                assert torch.equal(noise.energy(x, drawn), noise.energy(x))
            move(energy, step)
            noise.after_step(energy, step, UNSEEN)
        return noise

    done = train(snapshot(energy, DATA, MALA(steps=2), steps=21, **settings), range(1, 22))
    assert done.is_model
    longer = snapshot(energy, DATA, MALA(steps=2), steps=60, **settings)
    longer.load_state_dict(done.state_dict())
    train(longer, [22])
    longer.sample(4, DATA, seed(23))
    assert not longer.is_model
    assert len(longer.pool) == 12
    assert not longer.pool.energies_known
    train(longer, range(23, 40))


def test_bad_settings_are_refused():
    for settings in ({"snapshots": 0}, {"snapshots": 1.5}, {"snapshots": 2, "pool": 0}):
        for make in (lambda **settings: mixture(net(), **settings), AdaNCE):
            with pytest.raises(InputError):
                make(**settings)
    with pytest.raises(InputError, match="larger"):
        mixture(net()).sample(13, DATA, seed())


@pytest.mark.parametrize(
    ("shape", "settings", "expected"),
    [
        ((1, 8, 8), {"interval": 11}, 3),
        ((1, 8, 8), {"interval": 50}, 3),
        ((1, 8, 8), {"interval": 50, "snapshots": 1}, 1),
        ((1, 8, 8), {"interval": 50, "pool": 0}, 1),
        ((1, 8, 8), {"interval": 10}, 1),
        ((1, 8, 8), {"interval": "auto"}, 1),
        ((1, 8, 8), {}, 1),
        ((1, 8, 8), {"snapshots": 2}, 2),
        ((2,), {"interval": 50}, 1),
    ],
)
def test_long_intervals_of_images_keep_three_snapshots(shape, settings, expected):
    recipe = AdaNCE(rejuvenation=0.25, buffer=64, **settings)
    noise = recipe.build(MLP(shape, (8,)), torch.rand(16, *shape), batch_size=4, generator=seed()).noise
    assert noise.snapshots == expected
    assert len(noise.earlier) == expected - 1
