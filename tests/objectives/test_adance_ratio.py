"""The log-ratio of AdaNCE: temperature, margin, fitted constant, and what they are at a refresh."""

import math

import pytest
import torch
from small_models import (
    DATA,
    SHAPE,
    built,
    chain,
    close,
    gaps,
    gradients,
    likelihood_gradient,
    loss_and_noise,
    move,
    net,
    seed,
)

from adance.energies import MLP, ConvNet
from adance.errors import InputError
from adance.objectives import AdaNCE, Setting
from adance.samplers import MALA, Langevin


@pytest.mark.parametrize("noises", [1, 3])
@pytest.mark.parametrize("ratio_temperature", [None, 1.0])
def test_at_interval_one_the_gradient_is_the_likelihood_s(noises, ratio_temperature):
    energy, x = net(), DATA[:8].double()
    settings = {"interval": 1, "noises": noises, "ratio_temperature": ratio_temperature}
    for normalize, factor in ((False, noises / (1 + noises)), (True, 1.0)):
        objective = built(energy, x, normalize=normalize, **settings)
        out, noise = loss_and_noise(objective, energy, x)
        right = likelihood_gradient(energy, x, noise)
        assert right.abs().max() > 1e-3
        close(gradients(out.value, energy), factor * right)


def test_at_interval_one_a_mixture_has_the_energies_of_all_its_snapshots():
    energy, x = net(), DATA[:8].double()
    objective = built(energy, x, interval=1, snapshots=2, ratio_temperature=1.0)
    out = objective.loss(energy, x, seed())
    move(energy)
    objective.after_step(energy, 1, out)
    out = objective.loss(energy, x, seed())
    with torch.no_grad():
        right = (objective.noise.energy(x) - objective.noise.frozen(x)).mean()
    assert right.abs() > 1e-4
    close(out.metrics["ratio_data"], right)


@pytest.mark.parametrize("noises", [1, 4])
def test_first_step_of_the_hinge_is_the_likelihood_s(noises):
    energy, x = net(), DATA[:8].double()
    objective = built(energy, x, interval=10, ratio_temperature=0.0, margin=0.0, noises=noises)
    out, noise = loss_and_noise(objective, energy, x)
    assert out.value.item() == 0
    close(gradients(out.value, energy), likelihood_gradient(energy, x, noise))


def test_first_step_after_a_snapshot_is_the_likelihood_s_without_margin():
    energy, x = net(), DATA[:8].double()
    objective = built(energy, x, interval=10, margin=0.0)
    out, noise = loss_and_noise(objective, energy, x)
    close(gradients(out.value, energy), likelihood_gradient(energy, x, noise))


def test_hinge_on_a_moved_model_is_the_formula():
    energy, x = net(), DATA[:8].double()
    objective = built(energy, x, interval=10, ratio_temperature=0.0, margin=0.02)
    move(energy)
    out, noise = loss_and_noise(objective, energy, x)
    d_data, d_noise = gaps(objective, energy, x, noise)
    right = (0.02 - d_data).clamp(min=0).mean() + (d_noise - 0.02).clamp(min=0).mean()
    close(out.value.detach(), 2 * right)


@pytest.mark.parametrize("margin", [0.0, 0.01, -0.02])
def test_margin_is_nce_with_a_posterior_ratio(margin):
    # With ν = e^{δ/T} the posterior of a datum is u/(ν + u) = σ(r − δ/T); each term of the loss is NCE's, times T.
    T = 0.1
    energy, x = net(), DATA[:8].double()
    objective = built(energy, x, interval=10, margin=margin, ratio_temperature=T, normalize=False, center=False)
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
        objective = built(energy, x, interval=10, margin=0.0, ratio_temperature=T)
        scales.append(gradients(loss_and_noise(objective, energy, x)[0].value, energy))
    close(scales[1], scales[0])
    close(scales[2], scales[0])


def test_ratio_temperature_is_the_chain_s_where_nothing_is_fitted():
    energy = net(torch.float32)
    assert built(energy, DATA, center=False, sampler=Langevin(2, 1.0, 0.005)).temperature == pytest.approx(1.25e-5)
    assert built(energy, DATA, center=False, sampler=MALA(2, temperature=0.3)).temperature == 0.3
    assert built(energy, DATA, center=False, ratio_temperature=0.7).temperature == 0.7
    assert built(energy, DATA, center=False, ratio_temperature=0.0).temperature == 0
    assert built(energy, DATA, center=False, sampler=None).temperature == pytest.approx(1.25e-5)
    assert built(energy, DATA, interval=20).temperature == 0.005
    assert built(energy, DATA, interval=1).temperature == chain().temperature


def test_the_ratio_of_vectors_is_damped_unless_chains_are_reweighted():
    vectors, energy = torch.randn(20, 2, generator=torch.Generator().manual_seed(0)), MLP((2,), (4,))
    sampler, kept = MALA(2, temperature=0.3), {"start": "persistent"}
    for options, temperature in [({}, 0.3), ({"interval": 1}, 0.3), (kept, 0.003), ({"rejuvenation": 0.1}, 0.003)]:
        objective = AdaNCE(sampler=sampler, buffer=200, **options).build(energy, vectors, batch_size=20)
        assert objective.temperature == pytest.approx(temperature)


@pytest.mark.parametrize("make", [lambda: MLP((1, 8, 8), (64, 64)), lambda: ConvNet((1, 8, 8), width=0.5)])
def test_right_after_a_refresh_the_ratio_is_exactly_zero(make, generator):
    energy, x = make(), torch.rand(16, 1, 8, 8, generator=generator) * 2 - 1
    objective = AdaNCE(chain(), interval=2, margin=0.0, buffer=100).build(energy, x, generator=generator)
    optimizer = torch.optim.Adam(energy.parameters(), 1e-3)
    for step in range(1, 5):
        out = objective.loss(energy, x, generator)
        fresh = step % 2 == 1
        for name in ("ratio_data", "ratio_noise", "ratio_std"):
            assert (out.metrics[name].item() == 0) == fresh, (name, step)
        optimizer.zero_grad()
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step, out)


def test_a_constant_in_the_energy_is_fitted_away():
    energy, T, x = net(), 0.01, DATA[:8].double()
    objective = built(energy, x, interval=5, ratio_temperature=T, center=True)
    other = built(energy, x, interval=5, ratio_temperature=T, margin=0.0)
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
    fitted, plain = (built(energy, x, interval=5, margin=0.0, center=center) for center in (True, False))
    found = [gradients(loss_and_noise(objective, energy, x)[0].value, energy) for objective in (fitted, plain)]
    assert torch.equal(*found)


def test_a_margin_and_a_fitted_constant_are_refused_together():
    with pytest.raises(InputError, match="cannot be combined"):
        AdaNCE(margin=0.1, center=True)
    for center, recipe in (
        (False, AdaNCE(margin=0.1)),
        (True, AdaNCE()),
        (True, AdaNCE(ratio_temperature=0.1)),
        (False, AdaNCE(interval=1)),
    ):
        assert recipe.resolve(Setting(SHAPE, 8)).center == center
        objective = recipe.build(net(torch.float32), DATA, batch_size=8)
        assert (objective.log_ratio.constant == "centered") == center


def test_automatic_temperature_is_the_energy_that_one_chain_step_descends():
    energy, x = MLP(SHAPE, [8], spectral_norm=False).double(), DATA[:8].double()
    with torch.no_grad():
        energy.net[-1].weight.mul_(5)
    objective = built(energy, x, interval=5)
    for step in (1, 2):
        out = objective.loss(energy, x, seed())
        v = float(out.metrics["gradient_norm"])
        right = objective.noise.chains.kernel.step_size * v**2
        assert 0.005 < right < 10
        assert objective.temperature == pytest.approx(right, rel=1e-6)
        assert float(out.metrics["ratio_temperature"]) == pytest.approx(right, rel=1e-6)
        objective.after_step(energy, step, out)


@pytest.mark.parametrize(("scale", "bound"), [(0.0, 0.005), (1e4, 10.0)])
def test_automatic_temperature_has_bounds(scale, bound):
    energy, x = MLP(SHAPE, [8], spectral_norm=False).double(), DATA[:8].double()
    with torch.no_grad():
        energy.net[-1].weight.mul_(scale)
    objective = built(energy, x, interval=5, ratio_temperature="auto")
    objective.loss(energy, x, seed())
    assert objective.temperature == bound


def test_automatic_temperature_needs_langevin_chains():
    with pytest.raises(InputError, match="needs noise from Langevin chains"):
        built(net(), DATA[:8].double(), interval=5, ratio_temperature="auto", sampler=MALA(steps=2))
    for wrong in ("automatic", -1.0, math.nan):
        with pytest.raises(InputError, match="ratio_temperature"):
            AdaNCE(ratio_temperature=wrong)
