import copy
import math
import warnings

import pytest
import torch
from small_models import (
    DATA,
    SHAPE,
    built,
    chain,
    close,
    gaps,
    loss_and_noise,
    move,
    net,
    seed,
)
from torch import nn
from torch.nn.utils import spectral_norm as hook_spectral_norm

from adance.contrasts import Logistic
from adance.energies import ConvNet
from adance.errors import InputError
from adance.objectives import AdaNCE, Contrastive, LogRatio, Setting
from adance.objectives.objective import Site
from adance.objectives.snapshot_recipe import SnapshotRecipe
from adance.samplers import MALA
from adance.samplers.model_chains import ChainOptions


def test_defaults():
    setting = Setting(SHAPE, 8)
    recipe = AdaNCE().resolve(setting)
    assert (recipe.margin, recipe.normalize, recipe.center) == (0.0, True, True)
    assert (recipe.start, recipe.buffer, recipe.noises) == ("rejuvenated", 5000, 1)
    assert AdaNCE(interval=1).resolve(setting).margin == 0
    assert AdaNCE(interval=1, margin=0.02).resolve(setting).margin == 0.02
    objective = AdaNCE().build(net(torch.float32), DATA, batch_size=8)
    assert objective.noise.chains.starts.kind == "rejuvenated"
    assert len(objective.noise.chains.starts.buffer.samples) == 5000
    assert objective.own_parameters() == objective.adversary_parameters() == []
    assert objective.log_normalizer() is None


def test_pool_counts_all_noises_of_a_step():
    assert built(net(torch.float32), DATA, batch=8, interval=50, noises=2).noise.pool_size == 80


def test_power_iteration_advances_once_a_step_and_never_in_the_loss():
    energy = net(torch.float32).train()

    def vectors():
        return [value.clone() for name, value in energy.named_buffers()]

    def same(one, two):
        return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))

    objective = built(energy, DATA, interval=3)
    before = vectors()
    for _ in range(3):
        out = objective.loss(energy, DATA[:8], seed())
        out.value.backward()
    assert same(vectors(), before)
    twin = copy.deepcopy(energy)
    objective.after_step(energy, 1, out)
    assert not same(vectors(), before)
    twin.train()(DATA[:1])  # one training forward of torch's is one cycle
    assert same(vectors(), [value for _, value in twin.named_buffers()])


def test_the_loss_trains_no_snapshot_and_leaves_flags():
    energy = net(torch.float32).train()
    objective = built(energy, DATA)
    objective.loss(energy, DATA[:8], seed()).value.backward()
    assert all(parameter.grad is not None for parameter in energy.parameters())
    assert all(parameter.grad is None for parameter in objective.noise.frozen.parameters())
    assert all(module.training for module in energy.modules())


def losses(objective, energy, generator, steps, first):
    optimizer, found = torch.optim.SGD(energy.parameters(), 0.05), []
    for step in range(first, first + steps):
        rows = torch.randint(len(DATA), (8,), generator=generator)
        out = objective.loss(energy, DATA[rows], generator)
        optimizer.zero_grad()
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step, out)
        found.append(out.value.item())
    return found


@pytest.mark.parametrize("stop", [4, 5, 6])
@pytest.mark.parametrize(
    "settings",
    [{}, {"pool": 0}, {"pool": 20, "sampler": MALA(3, 2.0)}, {"interval": 1}, {"interval": "auto", "buffer": 400}],
)
def test_state_goes_on_as_if_nothing_had_happened(settings, stop):
    settings = {"interval": 5} | settings
    energy, generator = net(torch.float32), seed()
    objective = built(energy, DATA, **settings)
    losses(objective, energy, generator, stop, 1)
    other_energy = net(torch.float32)
    other = built(other_energy, DATA, **settings)
    other.load_state_dict(copy.deepcopy(objective.state_dict()))
    other_energy.load_state_dict(copy.deepcopy(energy.state_dict()))
    other_generator = seed()
    other_generator.set_state(generator.get_state())
    one = losses(objective, energy, generator, 8, stop + 1)
    assert losses(other, other_energy, other_generator, 8, stop + 1) == one
    assert torch.equal(other.noise.chains.starts.buffer.samples, objective.noise.chains.starts.buffer.samples)
    assert other.noise.metrics()["energy_gradients"] == objective.noise.metrics()["energy_gradients"]


def test_state_is_a_snapshot_and_never_the_energy():
    energy = net(torch.float32)
    objective = built(energy, DATA)
    before = copy.deepcopy(objective.state_dict())
    move(energy)
    assert {"noise.pool.samples", "noise.chains.starts.buffer.samples", "noise.frozen.net.1.weight"} <= set(before)
    for name, value in objective.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0, equal_nan=True)
    places = {value.data_ptr() for value in energy.state_dict().values()}
    assert not places & {value.data_ptr() for value in objective.state_dict().values()}


def test_seeded_losses_leave_the_global_generator():
    energy = net(torch.float32)
    before = torch.get_rng_state()
    found = [losses(built(copy.deepcopy(energy), DATA), copy.deepcopy(energy), seed(), 3, 1) for _ in range(2)]
    assert found[0] == found[1]
    assert torch.equal(torch.get_rng_state(), before)


def test_energy_gradients_are_counted():
    energy = net(torch.float32)
    objective = built(energy, DATA, interval=2, pool=16)
    losses(objective, energy, seed(), 4, 1)
    out = objective.loss(energy, DATA[:8], seed())
    # Three snapshots (before steps 1, 3 and 5) of 16 chains of 3 steps.
    assert out.metrics["energy_gradients"] == 3 * 16 * 3
    fresh = built(energy, DATA, interval=2, pool=0)
    losses(fresh, energy, seed(), 4, 1)
    assert fresh.noise.metrics()["energy_gradients"] == 4 * 8 * 3


def test_metrics_are_those_by_hand():
    T, x = 0.05, DATA[:8].double()
    energy = net()
    objective = built(energy, x, interval=10, ratio_temperature=T, noises=2, center=False)
    move(energy)
    out, noise = loss_and_noise(objective, energy, x)
    r_data, r_noise = (d / T for d in gaps(objective, energy, x, noise))
    weights = r_noise.exp()
    right = {
        "loss": out.value.detach(),
        "energy_data": out.energy_data.mean(),
        "energy_noise": out.energy_noise.mean(),
        "ratio_data": r_data.mean(),
        "ratio_noise": r_noise.mean(),
        "ratio_std": torch.cat([r_data, r_noise]).std(),
        "effective_sample_share": weights.sum() ** 2 / weights.square().sum() / 16,
        "auc": (out.energy_data[:, None] < out.energy_noise).double().mean(),
    }
    for name, value in right.items():
        torch.testing.assert_close(out.metrics[name].double(), value, rtol=1e-6, atol=1e-9)
    assert (out.energy_data.shape, out.energy_noise.shape) == ((8,), (16,))
    torch.testing.assert_close(out.energy_noise, copy.deepcopy(energy).eval()(noise).detach())
    assert all(value.numel() == 1 and not value.requires_grad for value in out.metrics.values())


def test_energy_penalty_is_added():
    energy, x = net(), DATA[:8].double()
    without, _ = loss_and_noise(built(energy, x), energy, x)
    with_it, _ = loss_and_noise(built(energy, x, energy_penalty=0.3), energy, x)
    square = without.energy_data.square().mean() + without.energy_noise.square().mean()
    close((with_it.value - without.value).detach(), 0.3 * square)


def test_randomness_in_the_forward_is_warned_of():
    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(9, 1)

        def forward(self, x):
            return nn.functional.dropout(self.layer(x.flatten(1)).squeeze(1), 0.5, self.training)

    with pytest.warns(UserWarning, match=r"frozen copy.*dropout"):
        built(Dropping().train(), DATA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        built(Dropping().eval(), DATA)
        built(Dropping().train(), DATA, interval=1)
        built(net(torch.float32).train(), DATA)
        built(ConvNet((1, 8, 8), width=0.2).train(), torch.zeros(8, 1, 8, 8))


def test_a_batch_is_all_the_data_unless_its_size_is_given():
    recipe, energy = AdaNCE(chain(), interval=20, buffer=50), net(torch.float32)
    assert recipe.build(energy, DATA[:8]).noise.pool_size == 16
    assert recipe.build(energy, DATA, batch_size=4).noise.pool_size == 8


def test_smaller_batches_serve_and_larger_ones_are_refused():
    energy = net(torch.float32)
    objective = built(energy, DATA, batch=8, interval=1)
    assert objective.loss(energy, DATA[:5], seed()).energy_noise.shape == (5,)
    with pytest.raises(InputError, match="pool of 8"):
        objective.loss(energy, DATA[:9], seed())


def test_a_column_of_energies_is_refused():
    class Column(nn.Linear):
        def forward(self, x):
            return super().forward(x.flatten(1))

    with pytest.raises(InputError) as caught:
        built(Column(9, 1), DATA)
    assert "(8, 1)" in str(caught.value)
    assert "(8,)" in str(caught.value)


def test_energies_that_cannot_be_trained_are_refused():
    with pytest.raises(InputError, match="parametrizations"):
        built(nn.Sequential(nn.Flatten(), hook_spectral_norm(nn.Linear(9, 1))), DATA)
    with pytest.raises(InputError, match="function"):
        built(lambda x: x.flatten(1).sum(1), DATA)


@pytest.mark.parametrize(
    "settings",
    [
        {"ratio_temperature": -1.0},
        {"ratio_temperature": math.nan},
        {"energy_penalty": -1.0},
        {"noises": 0},
        {"interval": 0},
        {"rejuvenation": 2.0},
        {"start": "nowhere"},
    ],
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError):
        AdaNCE(**settings)


def test_it_is_a_contrast_times_a_noise():
    energy, x = net(torch.float32), DATA[:8]
    one = AdaNCE(chain(), interval=3, buffer=50).build(energy, x, generator=seed(1))
    site = Site(energy, x, Setting(SHAPE, 8), seed(1), None, ChainOptions())
    noise = SnapshotRecipe(chain(), "rejuvenated", 0.25, 3, 8, 50).build(site)
    two = Contrastive(Logistic(), noise, LogRatio("auto", "centered"))
    assert one.loss(energy, x, seed()).value == two.loss(energy, x, seed()).value


def test_learns_the_scale_of_a_gaussian(generator):
    # Energy ½ax² + bx, whose likelihood is largest where 1/a is the data's variance and −b/a their mean. The 2,000
    # chains of a snapshot know 1/a to a relative √(2/2000) = 0.032; averaged over the last 50 snapshots, which are not
    # independent, five standard deviations lie between 0.023 and 0.16. Eight other seeds came within 0.006.
    class Quadratic(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.Parameter(torch.tensor([1.0, 0.0]))

        def forward(self, x):
            return (0.5 * self.weights[0] * x.square() + self.weights[1] * x).sum(1)

    data = 1 + 0.5 * torch.randn(2000, 1, generator=generator)
    energy = Quadratic()
    recipe = AdaNCE(MALA(10, 0.3), interval=5, ratio_temperature=1.0, margin=0.0, pool=2000, buffer=2000)
    objective = recipe.build(energy, data, generator=generator)
    optimizer = torch.optim.Adam(energy.parameters(), 0.1)
    averaged = torch.zeros(2)
    for step in range(1, 1001):
        optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / 1001)
        optimizer.zero_grad()
        out = objective.loss(energy, data, generator)
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step, out)
        averaged += energy.weights.detach() / 250 if step > 750 else 0
    a, b = averaged.tolist()
    assert 1 / a == pytest.approx(data.var(correction=0).item(), rel=0.03)
    assert -b / a == pytest.approx(data.mean().item(), abs=0.015)
