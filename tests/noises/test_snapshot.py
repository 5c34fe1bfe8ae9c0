import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import UNSEEN, snapshot
from torch import nn

from adance.energies import MLP
from adance.errors import InputError
from adance.objectives import AdaNCE
from adance.samplers import MALA, Langevin

DATA = torch.randn(64, 2, generator=torch.Generator().manual_seed(3))


class Quadratic(nn.Module):
    def __init__(self, a=1.0):
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a))

    def forward(self, x):
        return 0.5 * self.a * x.square().flatten(1).sum(1)


def seed(number=4):
    return torch.Generator().manual_seed(number)


def made(energy=None, sampler=None, **settings):
    settings = {"rejuvenation": 0.02, "interval": 50, "pool": 40, "generator": seed()} | settings
    return snapshot(energy or Quadratic(), DATA, sampler or Langevin(2, 0.1), **settings)


def by_default(batch=8, energy=None, data=DATA, **settings):
    recipe = AdaNCE(**({"sampler": Langevin(2, 0.1), "buffer": 200} | settings))
    return recipe.build(energy or Quadratic(), data, batch_size=batch, generator=seed()).noise


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 16), st.integers(1, 60))
def test_default_pool_grows_with_the_interval(batch, interval):
    noise = by_default(batch, interval=interval)
    assert noise.pool_size == batch * math.ceil(interval / 10) == len(noise.pool)


@pytest.mark.parametrize(("interval", "pool"), [(1, 128), (50, 640)])
def test_default_pools_of_a_batch_of_128(interval, pool):
    assert by_default(128, interval=interval, buffer=1000).pool_size == pool


def test_the_pool_must_fit_the_buffer_and_the_batch():
    with pytest.raises(InputError, match=r"200.*201"):
        by_default(pool=201)
    with pytest.raises(InputError, match=r"200.*300"):
        by_default(batch=300, pool=0)
    with pytest.raises(InputError, match=r"pool=7 .*8"):
        by_default(pool=7)
    assert by_default(pool=200).pool_size == 200
    # Chains that start from noise or data have no buffer to fit.
    assert by_default(pool=201, start="noise", buffer=1).pool_size == 201


@pytest.mark.parametrize("settings", [{"interval": 0}, {"interval": -5}, {"pool": -1}])
def test_bad_settings_are_refused(settings):
    for make in (made, AdaNCE):
        with pytest.raises(InputError):
            make(**settings)


def test_batches_larger_than_the_pool_are_refused(generator):
    with pytest.raises(InputError, match=r"17.*16"):
        made(pool=16).sample(17, DATA, generator)


def rows(x):
    return {tuple(row) for row in x.tolist()}


def test_minibatches_do_not_repeat_until_the_pool_is_used_up(generator):
    noise = made(pool=24, interval=100)
    epochs = []
    for _ in range(3):
        batches = [rows(noise.sample(8, DATA, generator).x) for _ in range(3)]
        assert set.union(*batches) == rows(noise.pool.samples)
        assert sum(map(len, batches)) == 24
        epochs.append(batches)
    assert epochs[0] != epochs[1] != epochs[2]
    assert noise.metrics()["energy_gradients"] == 24 * 2


def test_a_remainder_too_small_for_a_batch_is_left(generator):
    noise = made(pool=20, interval=100)
    one, two, three = (rows(noise.sample(8, DATA, generator).x) for _ in range(3))
    assert not one & two
    assert len(three) == 8


def test_without_a_pool_every_step_has_a_fresh_batch(generator):
    noise = made(pool=0, interval=100)
    batches = [rows(noise.sample(8, DATA, generator).x) for _ in range(5)]
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

    noise = made(pool=pool, interval=2, sampler=sampler, energy=Counting())
    for step in range(1, 6):
        noise.sample(8, DATA, generator)
        noise.after_step(Quadratic(), step, UNSEEN)
    assert noise.metrics()["energy_gradients"] == sum(seen) > 0


@pytest.mark.parametrize("interval", [1, 3, 5])
def test_refreshed_exactly_every_interval(interval):
    noise, energy, x = made(interval=interval), Quadratic(1.0), torch.ones(1, 2)
    copied = 1.0
    for step in range(1, 16):
        with torch.no_grad():
            energy.a.fill_(step + 1.0)
        noise.after_step(energy, step, UNSEEN)
        copied = step + 1.0 if step % interval == 0 else copied
        assert noise.frozen(x).item() == copied


def test_a_new_snapshot_means_new_chains(generator):
    noise = made(pool=8, interval=2)
    first = rows(noise.sample(8, DATA, generator).x)
    noise.after_step(Quadratic(), 1, UNSEEN)
    assert rows(noise.sample(8, DATA, generator).x) == first
    noise.after_step(Quadratic(), 2, UNSEEN)
    assert not rows(noise.sample(8, DATA, generator).x) & first


def test_energies_are_the_snapshot_s():
    energy = Quadratic(2.0)
    x = torch.randn(5, 2)
    noise = made(energy=energy, interval=2)
    with torch.no_grad():
        energy.a.fill_(3.0)
    torch.testing.assert_close(noise.energy(x), x.square().sum(1))


def test_at_interval_one_energies_are_the_model_s_own_without_their_graph(generator):
    energy = Quadratic(2.0)
    objective = AdaNCE(Langevin(2, 0.1), interval=1, buffer=200).build(energy, DATA, generator=generator)
    with torch.no_grad():
        energy.a.fill_(3.0)
    out = objective.loss(energy, DATA, generator)
    out.value.backward()
    assert out.metrics["ratio_data"] == out.metrics["ratio_std"] == 0
    # ∂E/∂a = E/a: with a graph through the noise's energies the gradient would be 0
    torch.testing.assert_close(energy.a.grad, (out.energy_data.mean() - out.energy_noise.mean()) / 3)


def test_chains_run_on_the_snapshot(generator):
    # Gradient descent of step 1 on ½a‖x‖² goes to x − ax: to 0 with the snapshot's a = 1, far away with the model's 5.
    energy = Quadratic(1.0)
    noise = made(energy, Langevin(1, 1.0, noise_std=0), interval=10)
    with torch.no_grad():
        energy.a.fill_(5.0)
    assert noise.sample(8, DATA, generator).x.abs().max() == 0


def test_ends_of_the_pool_are_in_the_buffer(generator):
    noise = made(pool=32, interval=10)
    noise.sample(8, DATA, generator)
    assert rows(noise.pool.samples) <= rows(noise.chains.starts.buffer.samples)


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

    noise = made(pool=0, sampler=Langevin(4, 0.1), energy=Poisoned(), batch=50)
    noise.sample(50, DATA, generator)
    assert noise.chains.starts.buffer.samples.isfinite().all()
    assert noise.metrics()["restarted_chains"] == 3
    noise.sample(50, DATA, generator)
    assert noise.metrics()["restarted_chains"] == 3
    assert noise.metrics()["gradient_norm"].isfinite()


def test_metrics_do_not_change_after_they_were_taken(generator):
    noise = made(pool=0)
    noise.sample(8, DATA, generator)
    taken = noise.metrics()
    before = {name: value.clone() for name, value in taken.items()}
    noise.sample(8, DATA, generator)
    assert all(torch.equal(value, before[name]) for name, value in taken.items())
    assert not torch.equal(noise.metrics()["gradient_norm"], before["gradient_norm"])


def test_gradient_norm_is_that_of_the_last_chains(generator):
    # Gradient descent at α = ½ on ½‖x‖²: ‖∇E‖ is ‖x‖, then ‖x‖/2.
    noise = made(pool=0, sampler=Langevin(2, 0.5, noise_std=0))
    x = noise.sample(8, DATA, generator).x
    right = (4 * x + 2 * x).norm(dim=1).mean() / 2
    torch.testing.assert_close(noise.metrics()["gradient_norm"], right)


def test_adapted_step_size_goes_on(generator):
    noise = made(pool=0, sampler=MALA(10, 5.0))
    sizes = []
    for _ in range(4):
        noise.sample(8, DATA, generator)
        sizes.append(float(noise.chains._step_size))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] < 5
    assert noise.chains.kernel.step_size == 5.0


def test_starts_are_uniform_for_images_and_fitted_for_vectors():
    image = by_default(data=torch.zeros(8, 1, 2, 2)).chains.starts.buffer.samples
    assert -1 <= image.min() < -0.9 < 0.9 < image.max() <= 1
    data = DATA * 0.1 + 50
    vector = by_default(data=data).chains.starts.buffer.samples
    # 200 draws: five standard errors of the mean, of the standard deviation 0.1.
    assert (vector.mean(0) - data.mean(0)).abs().max() < 5 * float(data.std(0).max()) / math.sqrt(200)


def test_default_sampler_is_that_of_the_event():
    assert isinstance(by_default(sampler=None).chains.kernel, MALA)
    noise = by_default(sampler=None, data=torch.zeros(8, 1, 2, 2), energy=MLP((1, 2, 2), (4,)))
    assert noise.temperature == pytest.approx(1.25e-5)
    assert not noise.normalized


def test_seeded_draws_leave_the_global_generator():
    before = torch.get_rng_state()
    one = made(pool=16).sample(8, DATA, seed(1)).x
    two = made(pool=16).sample(8, DATA, seed(1)).x
    assert torch.equal(one, two)
    assert torch.equal(torch.get_rng_state(), before)
