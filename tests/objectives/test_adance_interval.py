import math

import numpy as np
import pytest
import torch
from small_models import (
    DATA,
    SHAPE,
    built,
    chain,
    close,
    gradients,
    likelihood_gradient,
    loss_and_noise,
    move,
    net,
    seed,
)

from adance.configurable import describe
from adance.contrasts import LeastSquares, Logistic
from adance.energies import MLP
from adance.errors import InputError
from adance.noises import Separation
from adance.objectives import AdaBRM, AdaNCE, Setting
from adance.samplers import MALA


@pytest.mark.parametrize(
    ("event", "options", "interval", "adaptive", "chains"),
    [
        (SHAPE, {}, 10, False, 8),
        ((2,), {}, 50, True, 40),
        ((2,), {"interval": 50}, 50, False, 40),
        ((2,), {"start": "persistent"}, 50, False, 40),
    ],
)
def test_the_interval_is_by_default_that_of_the_kind_of_event(event, options, interval, adaptive, chains):
    recipe = AdaNCE(buffer=200, **options)
    data = torch.rand(20, *event, generator=seed())
    noise = recipe.build(MLP(event, (4,)), data, batch_size=8, generator=seed()).noise
    assert (noise.rule.interval, noise.rule.adaptive, noise.pool_size) == (interval, adaptive, chains)
    assert recipe.resolve(Setting(event, 8)).interval == ("auto" if adaptive else interval)


X = DATA[:8].double()


def refreshes(objective, energy, steps, lr):
    """Steps after which the snapshot was refreshed, and the weight of data at each step, by hand."""
    optimizer, found, pulls, before = torch.optim.SGD(energy.parameters(), lr), [], [], 0
    for step in range(1, steps + 1):
        out = objective.loss(energy, X, seed(step))
        pulls.append(torch.sigmoid(-ratios(objective, energy, X, seed(step))).mean().item())
        optimizer.zero_grad()
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step, out)
        if int(objective.noise.metrics()["refreshes"]) > before:
            before += 1
            found.append(step)
    return found, pulls


def ratios(objective, energy, x, generator):
    """r of data, with the constant of the pool's one batch."""
    pool = objective.noise.pool.samples
    with torch.no_grad():
        frozen = objective.noise.frozen
        energy.eval()
        d_data, d_noise = frozen(x) - energy(x), frozen(pool) - energy(pool)
        energy.train()
    T = objective.temperature
    return d_data / T - Logistic().log_z_offset(d_data / T, d_noise / T)


def test_a_snapshot_is_refreshed_when_it_is_stale_and_never_before():
    energy = net(torch.float64)
    objective = built(energy, X, interval="auto", ratio_temperature=1e-3, center=True)
    found, pulls = refreshes(objective, energy, 40, 0.02)
    assert found == [step for step, pull in enumerate(pulls, 1) if pull < 0.1]
    assert 2 <= len(found) <= 20
    assert all(pulls[step] == pytest.approx(0.5) for step in found if step < len(pulls))


def test_a_snapshot_that_does_not_go_stale_is_refreshed_after_fifty_steps():
    energy = net(torch.float64)
    objective = built(energy, X, interval="auto")
    assert refreshes(objective, energy, 120, 0.0)[0] == [50, 100]


def test_reweighted_chains_are_stale_when_half_of_them_would_be_left():
    x, energy = torch.randn(64, 2, generator=seed()), MLP((2,), (16,))
    x[:, 0] += 3 * x[:, 0].sign()
    objective = AdaNCE(MALA(2), interval="auto", pool=64, buffer=64).build(energy, x, batch_size=64, generator=seed())
    optimizer, before, shares, found = torch.optim.Adam(energy.parameters(), 0.03), 0, [], []
    for step in range(1, 61):
        out = objective.loss(energy, x, seed(step))
        with torch.no_grad():
            weights = objective.noise.frozen(objective.noise.pool.samples) - energy(objective.noise.pool.samples)
        weights = weights.softmax(0)
        shares.append(float(1 / (64 * weights.square().sum())))
        optimizer.zero_grad()
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step, out)
        if int(objective.noise.metrics()["refreshes"]) > before:
            before += 1
            found.append(step)
    assert found == [step for step, share in enumerate(shares, 1) if share < 0.5]
    assert 2 <= len(found) <= 30


@pytest.mark.parametrize(("event", "chains", "temperature"), [(SHAPE, 8, 0.005), ((2,), 40, 1.0)])
def test_auto_has_the_pool_and_temperature_of_the_kind_of_event(event, chains, temperature):
    recipe = AdaNCE(interval="auto", buffer=200)
    data = torch.rand(20, *event, generator=seed())
    objective = recipe.build(MLP(event, (4,)), data, batch_size=8, generator=seed())
    assert objective.log_ratio.constant == "centered"
    assert (objective.noise.pool_size, objective.temperature) == (chains, temperature)
    assert recipe.resolve(Setting(event, 8)).interval == "auto"


def test_the_ratio_temperature_of_images_is_the_same_for_all_intervals():
    assert {built(net(torch.float32), DATA, interval=k).temperature for k in (2, 10, 40)} == {0.005}


@pytest.mark.parametrize("noises", [1, 4])
def test_pull_is_the_mean_weight_of_data(noises):
    r = torch.linspace(-3, 3, 7, dtype=torch.float64, requires_grad=True)
    contrast = Logistic(noises)
    (weights,) = torch.autograd.grad(contrast.s1(r).mean(), r)
    assert contrast.mean_data_weight(r.detach()) == pytest.approx(float(weights.sum()))


def test_auto_needs_weights_that_fall_or_chains_that_are_reweighted():
    with pytest.raises(InputError, match="auto"):
        AdaNCE(interval="often")
    with pytest.raises(InputError, match=r"auto.*KL"):
        AdaBRM("kl", sampler=chain(), interval="auto", buffer=200).build(net(torch.float32), DATA, batch_size=8)
    AdaBRM("kl", interval="auto", buffer=200).build(MLP((2,), (4,)), torch.rand(20, 2), batch_size=8)


def test_weights_that_grow_cannot_tell():
    with pytest.raises(InputError, match="LeastSquares"):
        LeastSquares().mean_data_weight(torch.zeros(3))


def test_a_given_interval_is_kept_to():
    noise = built(net(torch.float32), DATA, interval=3, buffer=50).noise
    taken = []
    for step in range(1, 8):
        energy = net(torch.float32)
        noise.after_step(energy, step, Separation(lambda: torch.ones(()), lambda: torch.ones(())))
        if torch.equal(noise.energy(DATA), energy.eval()(DATA).detach()):
            taken.append(step)
    assert taken == [3, 6]


@pytest.mark.parametrize("interval", [0, -3, 5.0, math.nan, True, [5], "5"])
def test_an_interval_is_a_whole_number_or_auto(interval):
    with pytest.raises(InputError, match="interval must be"):
        AdaNCE(interval=interval)


def test_numpy_s_whole_numbers_serve():
    assert built(net(torch.float32), DATA, interval=np.int64(5)).noise.rule.interval == 5
    resolved = AdaNCE(interval=np.int64(5)).resolve(Setting(SHAPE, 8))
    assert describe(resolved)["init_args"]["interval"] == 5


@pytest.mark.parametrize("settings", [{"snapshots": 3}, {"center": False, "margin": 0.01}, {"margin": -0.01}])
def test_staleness_is_measured_from_the_first_batch_and_never_at_once(settings):
    energy = net(torch.float64)
    objective = built(energy, X, interval="auto", ratio_temperature=1e-3, **settings)
    optimizer, ages = torch.optim.SGD(energy.parameters(), 0.02), [0]
    for step in range(1, 101):
        optimizer.zero_grad()
        out = objective.loss(energy, X, seed(step))
        out.value.backward()
        optimizer.step()
        before = int(objective.noise.metrics()["refreshes"])
        objective.after_step(energy, step, out)
        ages[-1] += 1
        if int(objective.noise.metrics()["refreshes"]) > before:
            ages.append(0)
    assert len(ages) > 2
    assert min(ages[:-1]) >= 2


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: AdaNCE(interval=50), 3),
        (lambda: AdaNCE(interval=50, margin=0.01), 1),  # without a fitted constant
        (lambda: AdaNCE(interval=50, center=False, snapshots=2), 2),
        (lambda: AdaNCE(interval=1), 1),
        (lambda: AdaBRM("kl", interval=50), 1),  # grows
        (lambda: AdaBRM("logistic", interval=50), 3),
    ],
)
def test_the_number_of_snapshots_is_resolved_and_built(make, expected):
    resolved = make().resolve(Setting((1, 4, 4), 128))
    assert describe(resolved)["init_args"]["snapshots"] == expected
    objective = make().build(MLP((1, 4, 4), (8,)), torch.rand(128, 1, 4, 4))
    assert objective.noise.snapshots == expected


@pytest.mark.parametrize(("interval", "snapshots"), [(4, 1), (4, 2), ("auto", 1)])
def test_the_last_steps_are_maximum_likelihood(interval, snapshots):
    energy, x = net(), DATA[:8].double()
    objective = built(energy, x, interval=interval, snapshots=snapshots, finish=0.25, steps=12, pool=16)
    spent = []
    for step in range(1, 13):
        before = objective.energy_gradients
        out, noise = loss_and_noise(objective, energy, x)
        spent.append(objective.energy_gradients - before)
        if step > 9:
            assert out.metrics["ratio_std"] == 0
            close(gradients(out.value, energy), likelihood_gradient(energy, x, noise))
        move(energy)
        objective.after_step(energy, step, out)
    per_chain = objective.noise.chains.kernel.steps
    assert spent[9:] == [8 * per_chain] * 3
    assert sum(spent[1:9]) % (16 * per_chain) == 0
    assert sum(spent[1:9]) < 8 * 16 * per_chain


def test_without_a_number_of_steps_the_end_is_like_the_rest():
    energy, x = net(), DATA[:8].double()
    objective = built(energy, x, interval=4, finish=1.0, pool=8)
    for step in range(1, 9):
        out = objective.loss(energy, x, seed())
        objective.after_step(energy, step, out)
    assert objective.noise.rule.count == 2
    whole = built(energy, x, interval=4, finish=1.0, pool=8, steps=8)
    assert whole.noise.is_model


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), "half"])
def test_a_share_of_steps_outside_0_to_1_is_refused(share):
    with pytest.raises(InputError, match="finish"):
        AdaNCE(finish=share)
