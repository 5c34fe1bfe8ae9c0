import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from adance.energies import MLP
from adance.errors import InputError
from adance.noises import Snapshot
from adance.samplers import MALA, ChainStarts, Langevin

DATA = torch.randn(64, 2, generator=torch.Generator().manual_seed(3))


class Quadratic(nn.Module):
    def __init__(self, a=1.0):
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a))

    def forward(self, x):
        return 0.5 * self.a * x.square().flatten(1).sum(1)


def prepared(batch=8, energy=None, data=DATA, **settings):
    settings = {"sampler": Langevin(2, 0.1), "starts": ChainStarts(capacity=200)} | settings
    noise = Snapshot(**settings)
    noise.prepare(energy or Quadratic(), data, batch, torch.Generator().manual_seed(4))
    return noise


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 16), st.integers(1, 60))
def test_default_pool_grows_with_the_interval(batch, interval):
    noise = prepared(batch, interval=interval)
    assert noise.pool_size == batch * math.ceil(interval / 10) == len(noise.pool)


@pytest.mark.parametrize(("interval", "pool"), [(1, 128), (50, 640)])
def test_default_pools_of_a_batch_of_128(interval, pool):
    assert prepared(128, interval=interval, starts=ChainStarts(capacity=1000)).pool_size == pool


def test_the_pool_must_fit_the_buffer_and_the_batch():
    with pytest.raises(InputError, match=r"201.*200"):
        prepared(pool=201)
    with pytest.raises(InputError, match=r"300.*200"):
        prepared(batch=300, pool=0)
    with pytest.raises(InputError, match=r"7 chains.*8"):
        prepared(pool=7)
    assert prepared(pool=200).pool_size == 200
    # Chains that start from noise or data have no buffer to fit.
    assert prepared(pool=201, starts=ChainStarts("noise", capacity=1)).pool_size == 201


@pytest.mark.parametrize("settings", [{"interval": 0}, {"interval": -5}, {"pool": -1}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError):
        Snapshot(None, ChainStarts(), **settings)


def test_batches_larger_than_the_pool_are_refused(generator):
    with pytest.raises(InputError, match=r"17.*16"):
        prepared(pool=16).draw(17, DATA, generator)


def rows(x):
    return {tuple(row) for row in x.tolist()}


def test_minibatches_do_not_repeat_until_the_pool_is_used_up(generator):
    noise = prepared(pool=24, interval=100)
    epochs = []
    for _ in range(3):
        batches = [rows(noise.draw(8, DATA, generator)) for _ in range(3)]
        assert set.union(*batches) == rows(noise.pool.samples)
        assert sum(map(len, batches)) == 24
        epochs.append(batches)
    assert epochs[0] != epochs[1] != epochs[2]
    assert noise.metrics()["energy_gradients"] == 24 * 2


def test_a_remainder_too_small_for_a_batch_is_left(generator):
    noise = prepared(pool=20, interval=100)
    one, two, three = (rows(noise.draw(8, DATA, generator)) for _ in range(3))
    assert not one & two
    assert len(three) == 8


def test_without_a_pool_every_step_has_a_fresh_batch(generator):
    noise = prepared(pool=0, interval=100)
    batches = [rows(noise.draw(8, DATA, generator)) for _ in range(5)]
    assert len(set.union(*batches)) == 40
    assert noise.metrics()["energy_gradients"] == 5 * 8 * 2


@pytest.mark.parametrize("sampler", [Langevin(3, 0.1), MALA(3)])
@pytest.mark.parametrize("pool", [0, 16])
def test_energy_gradients_are_all_counted(sampler, pool, generator):
    seen = []

    class Counting(Quadratic):
        def forward(self, x):
            seen.append(len(x) if x.requires_grad else 0)
            return super().forward(x)

    noise = prepared(pool=pool, interval=2, sampler=sampler, energy=Counting())
    for step in range(1, 6):
        noise.draw(8, DATA, generator)
        noise.after_step(Quadratic(), step)
    assert noise.metrics()["energy_gradients"] == sum(seen) > 0


@pytest.mark.parametrize("interval", [1, 3, 5])
def test_refreshed_exactly_every_interval(interval):
    noise, energy, x = prepared(interval=interval), Quadratic(1.0), torch.ones(1, 2)
    copied = 1.0
    for step in range(1, 16):
        with torch.no_grad():
            energy.a.fill_(step + 1.0)
        noise.after_step(energy, step)
        copied = step + 1.0 if step % interval == 0 else copied
        assert noise.frozen(x).item() == copied


def test_a_new_snapshot_means_new_chains(generator):
    noise = prepared(pool=8, interval=2)
    first = rows(noise.draw(8, DATA, generator))
    noise.after_step(Quadratic(), 1)
    assert rows(noise.draw(8, DATA, generator)) == first
    noise.after_step(Quadratic(), 2)
    assert not rows(noise.draw(8, DATA, generator)) & first


def test_energies_are_the_snapshot_s():
    energy = Quadratic(2.0)
    x = torch.randn(5, 2)
    noise = prepared(energy=energy, interval=2)
    with torch.no_grad():
        energy.a.fill_(3.0)
    torch.testing.assert_close(noise.energy(x, energy(x)), x.square().sum(1))
    at_one = prepared(energy=energy, interval=1).energy(x, energy(x))
    assert torch.equal(at_one, energy(x).detach())
    assert not at_one.requires_grad


def test_chains_run_on_the_snapshot(generator):
    # Gradient descent of step 1 on ½a‖x‖² goes to x − ax: to 0 with the snapshot's a = 1, far away with the model's 5.
    energy = Quadratic(1.0)
    noise = prepared(energy=energy, sampler=Langevin(1, 1.0, noise_std=0), interval=10)
    with torch.no_grad():
        energy.a.fill_(5.0)
    assert noise.draw(8, DATA, generator).abs().max() == 0


def test_ends_of_the_pool_are_in_the_buffer(generator):
    noise = prepared(pool=32, interval=10)
    noise.draw(8, DATA, generator)
    assert rows(noise.pool.samples) <= rows(noise.starts.buffer.samples)


@pytest.mark.parametrize("gradient_too", [True, False])
def test_chains_that_met_nan_are_restarted_and_counted(gradient_too, generator):
    class Poisoned(nn.Module):
        calls = 0

        def forward(self, x):
            type(self).calls += 1
            values = 0.5 * x.square().sum(1) + 0
            if type(self).calls == 2:
                values = values * torch.where(torch.arange(len(x)) < 3, math.nan if gradient_too else 1.0, 1.0)
                if not gradient_too:
                    values[:3] = math.nan
            return values

    noise = prepared(pool=0, sampler=Langevin(4, 0.1), energy=Poisoned(), batch=50)
    noise.draw(50, DATA, generator)
    assert noise.starts.buffer.samples.isfinite().all()
    assert noise.metrics()["restarted_chains"] == 3
    noise.draw(50, DATA, generator)
    assert noise.metrics()["restarted_chains"] == 3
    assert noise.metrics()["gradient_norm"].isfinite()


def test_metrics_do_not_change_after_they_were_taken(generator):
    noise = prepared(pool=0)
    noise.draw(8, DATA, generator)
    taken = noise.metrics()
    before = {name: value.clone() for name, value in taken.items()}
    noise.draw(8, DATA, generator)
    assert all(torch.equal(value, before[name]) for name, value in taken.items())
    assert not torch.equal(noise.metrics()["gradient_norm"], before["gradient_norm"])


def test_gradient_norm_is_that_of_the_last_chains(generator):
    # Gradient descent at α = ½ on ½‖x‖²: ‖∇E‖ is ‖x‖, then ‖x‖/2.
    noise = prepared(pool=0, sampler=Langevin(2, 0.5, noise_std=0))
    x = noise.draw(8, DATA, generator)
    right = (4 * x + 2 * x).norm(dim=1).mean() / 2
    torch.testing.assert_close(noise.metrics()["gradient_norm"], right)


def test_adapted_step_size_goes_on(generator):
    noise = prepared(pool=0, sampler=MALA(10, 5.0))
    sizes = []
    for _ in range(4):
        noise.draw(8, DATA, generator)
        sizes.append(float(noise._step_size))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] < 5
    assert noise.sampler.step_size == 5.0


def test_starts_are_uniform_for_images_and_fitted_for_vectors():
    image = prepared(data=torch.zeros(8, 1, 2, 2)).starts.buffer.samples
    assert -1 <= image.min() < -0.9 < 0.9 < image.max() <= 1
    data = DATA * 0.1 + 50
    vector = prepared(data=data).starts.buffer.samples
    # 200 draws: five standard errors of the mean, of the standard deviation 0.1.
    assert (vector.mean(0) - data.mean(0)).abs().max() < 5 * float(data.std(0).max()) / math.sqrt(200)


def test_default_sampler_is_that_of_the_event():
    assert isinstance(prepared(sampler=None).sampler, MALA)
    noise = prepared(sampler=None, data=torch.zeros(8, 1, 2, 2), energy=MLP((1, 2, 2), (4,)))
    assert noise.temperature == pytest.approx(1.25e-5)
    assert not noise.normalized


def test_seeded_draws_leave_the_global_generator():
    before = torch.get_rng_state()
    one = prepared(pool=16).draw(8, DATA, torch.Generator().manual_seed(1))
    two = prepared(pool=16).draw(8, DATA, torch.Generator().manual_seed(1))
    assert torch.equal(one, two)
    assert torch.equal(torch.get_rng_state(), before)
