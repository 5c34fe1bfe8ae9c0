import copy
import math
import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import spectral_norm as hook_spectral_norm

from adance.contrasts import Logistic
from adance.energies import MLP, ConvNet
from adance.errors import InputError
from adance.noises import Snapshot
from adance.objectives import AdaNCE, Contrastive
from adance.samplers import MALA, Langevin

SHAPE = (1, 3, 3)
DATA = torch.rand(32, *SHAPE, generator=torch.Generator().manual_seed(3)) * 2 - 1


def net(dtype=torch.float64):
    return MLP(SHAPE, (16, 16)).to(dtype)


def chain():
    return Langevin(3, 1.0, noise_std=0.05)


def seed(number=7):
    return torch.Generator().manual_seed(number)


def prepared(energy, data, batch=8, **settings):
    objective = AdaNCE(settings.pop("sampler", chain()), **({"buffer": 200} | settings))
    objective.prepare(energy, data, batch, seed(1))
    return objective


def gradients(value, energy):
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, list(energy.parameters()))])


def likelihood_gradient(energy, x, noise):
    """Of mean E(data) − mean E(noise): the negative log-likelihood's, in units of T."""
    with torch.no_grad():
        energy.eval()
    value = energy(x).mean() - energy(noise).mean()
    energy.train()
    return gradients(value, energy)


def loss_and_noise(objective, energy, x):
    """The loss, and the very noise samples that it will have drawn."""
    noise = copy.deepcopy(objective).noise.draw(len(x) * objective.contrast.noises, x, seed(5))
    return objective.loss(energy, x, seed(5)), noise


def close(found, right):
    torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12 * float(right.abs().max()))


@pytest.mark.parametrize("noises", [1, 3])
@pytest.mark.parametrize("ratio_temperature", [None, 1.0])
def test_at_interval_one_the_gradient_is_the_likelihood_s(noises, ratio_temperature):
    energy, x = net(), DATA[:8].double()
    settings = {"interval": 1, "noises": noises, "ratio_temperature": ratio_temperature}
    for normalize, factor in ((False, noises / (1 + noises)), (True, 1.0)):
        objective = prepared(energy, x, normalize=normalize, **settings)
        out, noise = loss_and_noise(objective, energy, x)
        right = likelihood_gradient(energy, x, noise)
        assert right.abs().max() > 1e-3
        close(gradients(out.value, energy), factor * right)


@pytest.mark.parametrize("noises", [1, 4])
def test_first_step_of_the_hinge_is_the_likelihood_s(noises):
    energy, x = net(), DATA[:8].double()
    objective = prepared(energy, x, interval=10, ratio_temperature=0.0, margin=0.0, noises=noises)
    out, noise = loss_and_noise(objective, energy, x)
    assert out.value.item() == 0
    close(gradients(out.value, energy), likelihood_gradient(energy, x, noise))


def test_first_step_after_a_snapshot_is_the_likelihood_s_without_margin():
    energy, x = net(), DATA[:8].double()
    objective = prepared(energy, x, interval=10, margin=0.0)
    out, noise = loss_and_noise(objective, energy, x)
    close(gradients(out.value, energy), likelihood_gradient(energy, x, noise))


def test_hinge_on_a_moved_model_is_the_formula():
    energy, x = net(), DATA[:8].double()
    objective = prepared(energy, x, interval=10, ratio_temperature=0.0, margin=0.02)
    move(energy)
    out, noise = loss_and_noise(objective, energy, x)
    d_data, d_noise = gaps(objective, energy, x, noise)
    right = (0.02 - d_data).clamp(min=0).mean() + (d_noise - 0.02).clamp(min=0).mean()
    close(out.value.detach(), 2 * right)


def move(energy):
    with torch.no_grad():
        for parameter in energy.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=seed(), dtype=parameter.dtype)


def gaps(objective, energy, x, noise):
    """E_m − E_θ on data and noise."""
    with torch.no_grad():
        frozen, energy = objective.noise.frozen, copy.deepcopy(energy).eval()
        return frozen(x) - energy(x), frozen(noise) - energy(noise)


@pytest.mark.parametrize("margin", [0.0, 0.01, -0.02])
def test_margin_is_nce_with_a_posterior_ratio(margin):
    # With ν = e^{δ/T} the posterior of a datum is u/(ν + u) = σ(r − δ/T); each term of the loss is NCE's, times T.
    T = 0.1
    energy, x = net(), DATA[:8].double()
    objective = prepared(energy, x, interval=10, margin=margin, ratio_temperature=T, normalize=False, centre=False)
    move(energy)
    out, noise = loss_and_noise(objective, energy, x)
    u_data, u_noise = ((d / T).exp() for d in gaps(objective, energy, x, noise))
    nu = math.exp(margin / T)
    right = -(u_data / (nu + u_data)).log().mean() - (nu / (nu + u_noise)).log().mean()
    close(out.value.detach(), T * right)
    assert (u_data - 1).abs().max() > 1e-3


def test_gradients_keep_their_scale_whatever_the_ratio_temperature():
    energy, x = net(), DATA[:8].double()
    scales = []
    for T in (1e-3, 1.0, 1e3):
        objective = prepared(energy, x, interval=10, margin=0.0, ratio_temperature=T)
        scales.append(gradients(loss_and_noise(objective, energy, x)[0].value, energy))
    close(scales[1], scales[0])
    close(scales[2], scales[0])


def test_ratio_temperature_is_the_chain_s_where_nothing_is_fitted():
    energy = net(torch.float32)
    assert prepared(energy, DATA, centre=False, sampler=Langevin(2, 1.0, 0.005)).temperature == pytest.approx(1.25e-5)
    assert prepared(energy, DATA, centre=False, sampler=MALA(2, temperature=0.3)).temperature == 0.3
    assert prepared(energy, DATA, centre=False, ratio_temperature=0.7).temperature == 0.7
    assert prepared(energy, DATA, centre=False, ratio_temperature=0.0).temperature == 0
    assert prepared(energy, DATA, centre=False, sampler=None).temperature == pytest.approx(1.25e-5)
    assert prepared(energy, DATA, interval=20).temperature == pytest.approx(0.05 / 20)
    assert prepared(energy, DATA, interval=1).temperature == chain().temperature


def test_the_ratio_of_vectors_is_damped_by_default():
    vectors, energy = torch.randn(20, 2, generator=torch.Generator().manual_seed(0)), MLP((2,), (4,))
    sampler = MALA(2, temperature=0.3)
    for options, temperature in [({}, 0.003), ({"interval": 5}, 0.003), ({"interval": 1}, 0.3)]:
        objective = AdaNCE(sampler=sampler, buffer=200, **options)
        objective.prepare(energy, vectors, 20)
        assert objective.temperature == pytest.approx(temperature)


def test_defaults():
    objective = AdaNCE()
    assert (objective.margin, objective.normalize, objective.centre) == (0.0, True, True)
    assert objective.noise.starts.kind == "rejuvenated"
    assert objective.noise.starts.capacity == 5000
    assert objective.contrast.noises == 1
    assert AdaNCE(interval=1).margin == 0
    assert AdaNCE(interval=1, margin=0.02).margin == 0.02
    assert list(objective.parameters()) == []
    assert objective.log_normalizer() is None


def test_pool_counts_all_noises_of_a_step():
    assert prepared(net(torch.float32), DATA, batch=8, interval=50, noises=2).noise.pool_size == 80


@pytest.mark.parametrize("make", [lambda: MLP((1, 8, 8), (64, 64)), lambda: ConvNet((1, 8, 8), width=0.5)])
def test_right_after_a_refresh_the_ratio_is_exactly_zero(make, generator):
    energy, x = make(), torch.rand(16, 1, 8, 8, generator=generator) * 2 - 1
    objective = AdaNCE(chain(), interval=2, margin=0.0, buffer=100)
    objective.prepare(energy, x, generator=generator)
    optimizer = torch.optim.Adam(energy.parameters(), 1e-3)
    for step in range(1, 5):
        out = objective.loss(energy, x, generator)
        fresh = step % 2 == 1
        for name in ("ratio_data", "ratio_noise", "ratio_std"):
            assert (out.metrics[name].item() == 0) == fresh, (name, step)
        optimizer.zero_grad()
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step)


def test_power_iteration_advances_once_a_step_and_never_in_the_loss():
    energy = net(torch.float32).train()

    def vectors():
        return [value.clone() for name, value in energy.named_buffers()]

    def same(one, two):
        return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))

    objective = prepared(energy, DATA, interval=3)
    before = vectors()
    for _ in range(3):
        objective.loss(energy, DATA[:8], seed()).value.backward()
    assert same(vectors(), before)
    twin = copy.deepcopy(energy)
    objective.after_step(energy, 1)
    assert not same(vectors(), before)
    twin.train()(DATA[:1])  # one training forward of torch's is one cycle
    assert same(vectors(), [value for _, value in twin.named_buffers()])


def test_the_loss_trains_no_snapshot_and_leaves_flags():
    energy = net(torch.float32).train()
    objective = prepared(energy, DATA)
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
        objective.after_step(energy, step)
        found.append(out.value.item())
    return found


@pytest.mark.parametrize("stop", [4, 5, 6])
@pytest.mark.parametrize("settings", [{}, {"pool": 0}, {"pool": 20, "sampler": MALA(3, 2.0)}, {"interval": 1}])
def test_state_goes_on_as_if_nothing_had_happened(settings, stop):
    settings = {"interval": 5} | settings
    energy, generator = net(torch.float32), seed()
    objective = prepared(energy, DATA, **settings)
    losses(objective, energy, generator, stop, 1)
    other_energy = net(torch.float32)
    other = prepared(other_energy, DATA, **settings)
    other.load_state_dict(copy.deepcopy(objective.state_dict()))
    other_energy.load_state_dict(copy.deepcopy(energy.state_dict()))
    other_generator = seed()
    other_generator.set_state(generator.get_state())
    one = losses(objective, energy, generator, 8, stop + 1)
    assert losses(other, other_energy, other_generator, 8, stop + 1) == one
    assert torch.equal(other.noise.starts.buffer.samples, objective.noise.starts.buffer.samples)
    assert other.noise.metrics()["energy_gradients"] == objective.noise.metrics()["energy_gradients"]


def test_state_is_a_snapshot_and_never_the_energy():
    energy = net(torch.float32)
    objective = prepared(energy, DATA)
    before = copy.deepcopy(objective.state_dict())
    move(energy)
    assert {"noise.pool", "noise.starts.buffer.samples", "noise.frozen.net.1.weight"} <= set(before)
    for name, value in objective.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0, equal_nan=True)
    places = {value.data_ptr() for value in energy.state_dict().values()}
    assert not places & {value.data_ptr() for value in objective.state_dict().values()}


def test_seeded_losses_leave_the_global_generator():
    energy = net(torch.float32)
    before = torch.get_rng_state()
    found = [losses(prepared(copy.deepcopy(energy), DATA), copy.deepcopy(energy), seed(), 3, 1) for _ in range(2)]
    assert found[0] == found[1]
    assert torch.equal(torch.get_rng_state(), before)


def test_energy_gradients_are_counted():
    energy = net(torch.float32)
    objective = prepared(energy, DATA, interval=2, pool=16)
    losses(objective, energy, seed(), 4, 1)
    out = objective.loss(energy, DATA[:8], seed())
    # Three snapshots (before steps 1, 3 and 5) of 16 chains of 3 steps.
    assert out.metrics["energy_gradients"] == 3 * 16 * 3
    fresh = prepared(energy, DATA, interval=2, pool=0)
    losses(fresh, energy, seed(), 4, 1)
    assert fresh.noise.metrics()["energy_gradients"] == 4 * 8 * 3


def test_metrics_are_those_by_hand():
    T, x = 0.05, DATA[:8].double()
    energy = net()
    objective = prepared(energy, x, interval=10, ratio_temperature=T, noises=2, centre=False)
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
    without, _ = loss_and_noise(prepared(energy, x), energy, x)
    with_it, _ = loss_and_noise(prepared(energy, x, energy_penalty=0.3), energy, x)
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
        prepared(Dropping().train(), DATA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared(Dropping().eval(), DATA)
        prepared(Dropping().train(), DATA, interval=1)
        prepared(net(torch.float32).train(), DATA)
        prepared(ConvNet((1, 8, 8), width=0.2).train(), torch.zeros(8, 1, 8, 8))


def test_loss_prepares_itself_for_its_first_batch():
    objective, energy = AdaNCE(chain(), interval=20, buffer=50), net(torch.float32)
    objective.loss(energy, DATA[:8], seed()).value.backward()
    assert objective.prepared
    assert objective.noise.pool_size == 16


def test_smaller_batches_serve_and_larger_ones_are_refused():
    energy = net(torch.float32)
    objective = prepared(energy, DATA, batch=8, interval=1)
    assert objective.loss(energy, DATA[:5], seed()).energy_noise.shape == (5,)
    with pytest.raises(InputError, match="pool of 8"):
        objective.loss(energy, DATA[:9], seed())


def test_a_column_of_energies_is_refused():
    class Column(nn.Linear):
        def forward(self, x):
            return super().forward(x.flatten(1))

    with pytest.raises(InputError) as caught:
        prepared(Column(9, 1), DATA)
    assert "(8, 1)" in str(caught.value)
    assert "(8,)" in str(caught.value)


def test_energies_that_cannot_be_trained_are_refused():
    with pytest.raises(InputError, match="parametrizations"):
        prepared(nn.Sequential(nn.Flatten(), hook_spectral_norm(nn.Linear(9, 1))), DATA)
    with pytest.raises(InputError, match="function"):
        prepared(lambda x: x.flatten(1).sum(1), DATA)


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
    one = AdaNCE(chain(), interval=3, buffer=50)
    two = Contrastive(Logistic(), Snapshot(chain(), copy.deepcopy(one.noise.starts), 3), 0.05 / 3, centre=True)
    for objective in (one, two):
        objective.prepare(energy, x, generator=seed(1))
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
    objective = AdaNCE(MALA(10, 0.3), interval=5, ratio_temperature=1.0, margin=0.0, pool=2000, buffer=2000)
    objective.prepare(energy, data, generator=generator)
    optimizer = torch.optim.Adam(energy.parameters(), 0.1)
    averaged = torch.zeros(2)
    for step in range(1, 1001):
        optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / 1001)
        optimizer.zero_grad()
        objective.loss(energy, data, generator).value.backward()
        optimizer.step()
        objective.after_step(energy, step)
        averaged += energy.weights.detach() / 250 if step > 750 else 0
    a, b = averaged.tolist()
    assert 1 / a == pytest.approx(data.var(correction=0).item(), rel=0.03)
    assert -b / a == pytest.approx(data.mean().item(), abs=0.015)


def test_a_constant_in_the_energy_is_fitted_away():
    energy, T, x = net(), 0.01, DATA[:8].double()
    objective = prepared(energy, x, interval=5, ratio_temperature=T, centre=True)
    other = prepared(energy, x, interval=5, ratio_temperature=T, margin=0.0)
    with torch.no_grad():
        for parameter in energy.parameters():
            parameter.add_(0.01 * torch.randn(parameter.shape, generator=seed(2), dtype=parameter.dtype))
    values, slopes = [], []
    for shift in (0.0, 0.3):
        with torch.no_grad():
            energy.net[-1].bias.add_(shift)
        values.append(loss_and_noise(objective, energy, x)[0].value)
        # the bias of the output, that very constant, is not pulled either way
        bias = torch.autograd.grad(values[-1], energy.net[-1].bias, retain_graph=True)[0]
        assert abs(bias) < 1e-4
        slopes.append(gradients(values[-1], energy))
        unfitted = loss_and_noise(other, energy, x)[0].value
        assert values[-1] <= unfitted
    torch.testing.assert_close(*values, rtol=1e-3, atol=0)
    torch.testing.assert_close(*slopes, rtol=1e-3, atol=1e-3 * float(slopes[0].abs().max()))


def test_right_after_a_refresh_fitting_changes_nothing():
    energy, x = net(), DATA[:8].double()
    fitted, plain = (prepared(energy, x, interval=5, margin=0.0, centre=centre) for centre in (True, False))
    found = [gradients(loss_and_noise(objective, energy, x)[0].value, energy) for objective in (fitted, plain)]
    assert torch.equal(*found)


def test_a_margin_and_a_fitted_constant_are_refused_together():
    with pytest.raises(InputError, match="one of them"):
        AdaNCE(margin=0.1, centre=True)
    assert not AdaNCE(margin=0.1).centre
    assert AdaNCE().centre


@pytest.mark.parametrize(("event", "interval", "chains"), [(SHAPE, 10, 8), ((2,), 50, 40)])
def test_the_interval_is_by_default_that_of_the_kind_of_event(event, interval, chains):
    objective = AdaNCE(buffer=200)
    objective.prepare(MLP(event, (4,)), torch.rand(20, *event, generator=seed()), 8, seed())
    assert (objective.noise.interval, objective.init_args["interval"], len(objective.noise.pool)) == (
        interval,
        interval,
        chains,
    )
