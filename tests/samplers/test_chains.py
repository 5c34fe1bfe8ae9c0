import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from adance.energies import MLP
from adance.errors import InputError
from adance.objectives import Setting
from adance.objectives.resolve import resolve_sampler
from adance.samplers import HMC, MALA, Kernel, Langevin, RandomWalkMetropolis, run_chains
from adance.samplers.kernel import ChainState

KERNELS = [Langevin(4, 0.1), MALA(4, 0.1)]


def quadratic(x):
    return 0.5 * x.flatten(1).square().sum(1)


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from(KERNELS),
    st.integers(1, 4),
    st.one_of(
        st.sampled_from([(3, 8, 8), (5,), (2, 3)]), st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
    ),
)
def test_any_event_shape(kernel, n, event):
    chains = run_chains(kernel, quadratic, torch.zeros(n, *event), generator=torch.Generator().manual_seed(0))
    assert chains.x.shape == (n, *event)
    assert chains.finite.shape == (n,)
    assert chains.energy.shape == chains.gradient_norm.shape == chains.acceptance.shape == (4,)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("event", [(3, 4, 4), (5,), (2, 3)])
def test_each_row_is_its_own_chain_of_the_whole_event(kernel, event, generator):
    # One far row among many at rest: rows must not mix, and the far one must fall as the whole event's energy says.
    x = torch.zeros(50, *event, dtype=torch.float64)
    x[7] = 1000.0
    ended = run_chains(kernel, quadratic, x, 1, generator=generator).x
    others = torch.cat([ended[:7], ended[8:]])
    assert others.abs().max() < 10
    assert ended[7].mean() == pytest.approx(900, abs=5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_seed_gives_the_same_chains_whatever_the_global_generator_does(kernel):
    def run(disturb):
        generator = torch.Generator().manual_seed(5)
        x = torch.zeros(6, 3)
        return run_chains(
            kernel, quadratic, x, generator=generator, callback=lambda i, x: torch.rand(i) if disturb else None
        ).x

    assert torch.equal(run(False), run(True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_global_generator_is_untouched(kernel, generator):
    before = torch.get_rng_state()
    run_chains(kernel, quadratic, torch.zeros(6, 3), generator=generator)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("kernel", KERNELS)
def test_records_equal_those_by_hand(kernel, generator):
    x = torch.randn(9, 2, 3, generator=generator, dtype=torch.float64)
    path = [x]
    chains = run_chains(kernel, quadratic, x, generator=generator, callback=lambda i, x: path.append(x.clone()))
    norms = torch.stack([x.flatten(1).norm(dim=1).mean() for x in path[:-1]])  # ∇½‖x‖² = x
    energies = torch.stack([quadratic(x).mean() for x in path[:-1]])
    torch.testing.assert_close(chains.gradient_norm, norms)
    torch.testing.assert_close(chains.energy, energies)
    moved = torch.stack([(b != a).flatten(1).any(1).double().mean() for a, b in pairwise(path)])
    torch.testing.assert_close(chains.acceptance, moved)
    assert torch.equal(path[-1], chains.x)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_column_of_energies_is_refused(kernel):
    with pytest.raises(InputError) as caught:
        run_chains(kernel, lambda x: x.sum(1, keepdim=True), torch.zeros(7, 2))
    assert "(7, 1)" in str(caught.value)
    assert "(7,)" in str(caught.value)


def gradient_too(values, rows):
    return values * torch.where(rows, math.nan, 1.0)


def value_only(values, rows):
    values = values.clone()
    values[rows] = math.nan
    return values


@pytest.mark.parametrize("poison", [gradient_too, value_only])
def test_chains_that_met_nan_are_reported(poison, generator):
    calls, rows = [], torch.isin(torch.arange(50), torch.tensor([3, 20, 41]))

    def poisoned(x):
        calls.append(1)
        return poison(quadratic(x), rows) if len(calls) == 3 else quadratic(x)

    chains = run_chains(Langevin(6, 0.1), poisoned, torch.zeros(50, 2), generator=generator)
    assert torch.equal(~chains.finite, rows)
    assert chains.energy.isfinite().all()


def test_plain_functions_and_modules_serve_alike(generator):
    class Module(nn.Module):
        def forward(self, x):
            return quadratic(x)

    one, two = (
        run_chains(Langevin(3), energy, torch.zeros(4, 2), generator=torch.Generator().manual_seed(1)).x
        for energy in (quadratic, Module())
    )
    assert torch.equal(one, two)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
def test_sampling_leaves_a_normalized_net_bit_for_bit(kernel, train, generator):
    net = MLP((1, 3, 3), hidden=(8, 8)).train(train)
    net.net[1].train(not train)
    next(net.parameters()).requires_grad_(False)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    flags = [(module, module.training) for module in net.modules()]
    trainable = [parameter.requires_grad for parameter in net.parameters()]
    for _ in range(2):
        run_chains(kernel, net, torch.randn(5, 1, 3, 3), generator=generator)
    assert any("_u" in name for name in before)
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert [(module, module.training) for module in net.modules()] == flags
    assert [parameter.requires_grad for parameter in net.parameters()] == trainable
    assert all(parameter.grad is None for parameter in net.parameters())


def test_flags_come_back_when_the_energy_fails():
    net = MLP((1, 3, 3), hidden=(8,))
    with pytest.raises(RuntimeError):
        run_chains(Langevin(2), net, torch.zeros(2, 7))
    assert all(module.training for module in net.modules())


def test_default_samplers():
    image, vector = (resolve_sampler(None, Setting(shape, 8)) for shape in ((1, 8, 8), (5,)))
    assert isinstance(image, Langevin)
    assert (image.steps, image.step_size, image.noise_std, tuple(image.bounds)) == (30, 1.0, 0.005, (-1, 1))
    assert isinstance(vector, MALA)
    assert (vector.steps, vector.temperature) == (50, 1.0)


def test_a_kernel_whose_init_takes_no_step_size_is_driven(generator):
    class Descent(Kernel):
        steps, temperature = 3, 0.0

        def init(self, energy, x):
            return ChainState(x)

        def step(self, energy, state, generator=None):
            return Langevin(step_size=0.5, noise_std=0.0).step(energy, state, generator)

    x = torch.ones(2, 3)
    torch.testing.assert_close(run_chains(Descent(), lambda x: 0.5 * x.square().sum(1), x).x, x / 8)


@pytest.mark.parametrize("made_from", [Langevin, MALA, HMC, RandomWalkMetropolis])
def test_events_without_an_axis_are_one_clear_error(made_from):
    with pytest.raises(InputError, match=r"events of shape \(\) in a tensor of shape \(5,\)"):
        run_chains(made_from(), lambda x: 0.5 * x.square(), torch.zeros(5), steps=2)
