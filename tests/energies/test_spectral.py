import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.utils import spectral_norm as hook_spectral_norm

from adance.energies import MLP, ConvNet, advance_power_iteration, energy_and_gradient, freeze, power_iteration_held
from adance.energies.spectral import normalize_layers, refuse_hook_spectral_norm
from adance.errors import InputError


def vectors(net):
    return {name: value.clone() for name, value in net.named_buffers() if name.endswith(("_u", "_v"))}


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def test_mlp_is_lipschitz_with_constant_one(generator):
    net = MLP((1, 4, 4), (32, 32)).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(10)
    for _ in range(300):
        advance_power_iteration(net)
    net.eval()
    x = 3 * torch.randn(4000, 1, 4, 4, generator=generator, dtype=torch.float64)
    norms = energy_and_gradient(net, x)[1].flatten(1).norm(dim=1)
    assert norms.max() <= 1 + 1e-6
    assert norms.max() > 0.01
    with torch.no_grad():
        gaps = (net(x[:2000]) - net(x[2000:])).abs() / (x[:2000] - x[2000:]).flatten(1).norm(dim=1)
    assert gaps.max() <= 1 + 1e-6


def test_the_bound_is_reached_by_a_linear_net(generator):
    net = MLP((1, 2, 2), ()).double()
    x = torch.randn(10, 1, 2, 2, generator=generator, dtype=torch.float64)
    norms = energy_and_gradient(net.eval(), x)[1].flatten(1).norm(dim=1)
    torch.testing.assert_close(norms, torch.ones(10, dtype=torch.float64))


def test_iterating_converges_to_the_largest_singular_value():
    net = normalize_layers(nn.Sequential(nn.Linear(30, 20)))
    for _ in range(500):
        advance_power_iteration(net)
    net.eval()
    assert torch.linalg.matrix_norm(net[0].weight, 2).item() == pytest.approx(1, abs=1e-4)


def test_one_advance_is_one_cycle_by_hand():
    net = normalize_layers(nn.Sequential(nn.Linear(6, 5)))
    weight, u = net[0].parametrizations.weight.original.detach(), vectors(net)["0.parametrizations.weight.0._u"]
    v = vectors(net)["0.parametrizations.weight.0._v"]
    advance_power_iteration(net)
    u = nn.functional.normalize(weight @ v, dim=0)
    v = nn.functional.normalize(weight.T @ u, dim=0)
    found = vectors(net)
    torch.testing.assert_close(found["0.parametrizations.weight.0._u"], u)
    torch.testing.assert_close(found["0.parametrizations.weight.0._v"], v)


def test_held_forwards_do_not_iterate_and_flags_come_back():
    net = ConvNet((1, 8, 8), width=0.1).train()
    net.net[0].eval()
    before, flags = vectors(net), [module.training for module in net.modules()]
    with power_iteration_held(net):
        net(torch.randn(2, 1, 8, 8)).sum().backward()
        assert net.training
    assert same(vectors(net), before)
    assert [module.training for module in net.modules()] == flags
    net(torch.randn(2, 1, 8, 8))
    assert not same(vectors(net), before)


@pytest.mark.parametrize("train", [True, False])
def test_advancing_moves_only_the_vectors(train):
    net = ConvNet((1, 8, 8), width=0.1).train(train)
    before, moved = copy.deepcopy(net.state_dict()), vectors(net)
    advance_power_iteration(net)
    first = "net.0.parametrizations.weight.0._u"
    assert not torch.equal(vectors(net)[first], moved[first])
    for name, value in net.state_dict().items():
        assert name in moved or torch.equal(value, before[name])
    assert all(module.training == train for module in net.modules())


def test_plain_functions_have_nothing_to_advance():
    advance_power_iteration(lambda x: x.sum(1))
    with power_iteration_held(lambda x: x.sum(1)):
        pass


@pytest.mark.parametrize("make", [lambda: MLP((1, 8, 8), (16, 16)), lambda: ConvNet((1, 8, 8), width=0.1)])
def test_a_net_that_never_trained_is_finite_and_normalized(make):
    net = make().eval()
    energies = net(torch.randn(4, 1, 8, 8))
    assert energies.isfinite().all()
    for layer in freeze(net).modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            # torch begins with 15 cycles of the power iteration.
            assert torch.linalg.matrix_norm(layer.weight.flatten(1), 2).item() == pytest.approx(1, abs=0.15)


def test_a_convolution_can_gain_more_than_its_flattened_norm():
    # The 3×3 kernel of ones, as a matrix 1×9, has norm 3. On n×n images it acts as two tridiagonal matrices of ones,
    # each with the largest eigenvalue 1 + 2cos(π/(n + 1)): the gain tends to the kernel's width, 3.
    n = 8
    layer = nn.Conv2d(1, 1, 3, padding=1, bias=False).double()
    nn.init.ones_(layer.weight)
    normalize_layers(layer).eval()
    assert torch.linalg.matrix_norm(layer.weight.flatten(1), 2).item() == pytest.approx(1)
    basis = torch.eye(n * n, dtype=torch.float64).view(-1, 1, n, n)
    gain = torch.linalg.matrix_norm(layer(basis).flatten(1), 2).item()
    assert gain == pytest.approx((1 + 2 * math.cos(math.pi / (n + 1))) ** 2 / 3)
    assert 2.7 < gain <= 3


def test_random_convolutions_gain_at_most_the_kernel_s_width(generator):
    layer = nn.Conv2d(2, 3, 3, padding=1, bias=False).double()
    normalize_layers(layer)
    for _ in range(100):
        advance_power_iteration(layer)
    basis = torch.eye(2 * 36, dtype=torch.float64).view(-1, 2, 6, 6)
    assert torch.linalg.matrix_norm(layer.eval()(basis).flatten(1), 2) <= 3 + 1e-9


def test_layers_are_normalized_once():
    net = normalize_layers(normalize_layers(nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))))
    assert [len(net[i].parametrizations.weight) for i in (0, 2)] == [1, 1]


def test_hook_based_normalization_is_refused():
    net = nn.Sequential(nn.Linear(2, 2), hook_spectral_norm(nn.Linear(2, 1)))
    with pytest.raises(InputError, match=r"'1'.*parametrizations"):
        refuse_hook_spectral_norm(net)
    refuse_hook_spectral_norm(MLP((1, 2, 2)))
