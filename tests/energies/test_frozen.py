import copy

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import orthogonal, weight_norm
from torch.nn.utils.parametrize import is_parametrized

from adance.energies import MLP, ConvNet, advance_power_iteration, freeze, refresh
from adance.energies.energy import evaluate


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x).tanh()).sum(1)


class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.register_buffer("shift", torch.randn(4))
        self.register_buffer("scale", torch.tensor(2.0), persistent=False)

    def forward(self, x):
        return self.layer(self.scale * x - self.shift).squeeze(1)


class Single(nn.Linear):
    def forward(self, x):
        return super().forward(x).squeeze(1)


def weight_normed():
    return nn.Sequential(weight_norm(nn.Linear(4, 6)), nn.Tanh(), weight_norm(Single(6, 1)))


def orthogonalised():
    return nn.Sequential(orthogonal(nn.Linear(4, 4)), nn.Tanh(), Single(4, 1))


def root_parametrized():
    return weight_norm(Single(4, 1))


def with_dropout():
    return nn.Sequential(nn.Linear(4, 6), nn.Dropout(), Single(6, 1))


NETS = {
    "mlp": (lambda: MLP((1, 2, 2), (8, 8)), (1, 2, 2)),
    "vector mlp": (lambda: MLP((4,), (8,)), (4,)),
    "convnet": (lambda: ConvNet((1, 8, 8), width=0.25), (1, 8, 8)),
    "weight norm": (weight_normed, (4,)),
    "orthogonal": (orthogonalised, (4,)),
    "parametrized root": (root_parametrized, (4,)),
    "tied": (Tied, (4,)),
    "buffers": (Buffered, (4,)),
}


@pytest.fixture(params=NETS)
def made(request):
    make, event = NETS[request.param]
    return make(), torch.randn(5, *event)


def train(net, x, steps=2):
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()


def read(net, x):
    with torch.no_grad():
        return evaluate(net.eval(), x)


def test_copy_has_the_same_energies(made):
    net, x = made
    frozen = freeze(net)
    assert torch.equal(frozen(x), read(net, x))


def test_copy_is_plain_frozen_and_in_evaluation_mode(made):
    net, _ = made
    net.train()
    frozen = freeze(net)
    assert not any(is_parametrized(module) for module in frozen.modules())
    assert not any(module.training for module in frozen.modules())
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


def test_original_is_untouched_and_trains_on(made):
    net, x = made
    kinds = [type(module) for module in net.modules()]
    before = copy.deepcopy(net.state_dict())
    freeze(net)
    assert [type(module) for module in net.modules()] == kinds
    assert list(net.state_dict()) == list(before)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(module.training for module in net.modules())
    assert all(parameter.requires_grad for parameter in net.parameters())
    train(net, x)
    changed = [not torch.equal(parameter, before[name]) for name, parameter in net.named_parameters()]
    assert any(changed)


def test_copy_stands_still_while_the_original_trains(made):
    net, x = made
    frozen = freeze(net)
    before = frozen(x).clone()
    train(net, x)
    advance_power_iteration(net)
    assert torch.equal(frozen(x), before)
    assert not torch.equal(read(net, x), before)


def test_refresh_copies_in_place(made):
    net, x = made
    frozen = freeze(net)
    places = {name: value.data_ptr() for name, value in frozen.state_dict().items()}
    train(net, x)
    advance_power_iteration(net)
    refresh(frozen, net)
    assert torch.equal(frozen(x), read(net, x))
    assert {name: value.data_ptr() for name, value in frozen.state_dict().items()} == places
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


def test_refresh_leaves_the_original_bit_for_bit(made):
    net, _ = made
    frozen = freeze(net)
    net.train()
    before = copy.deepcopy(net.state_dict())
    refresh(frozen, net)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(module.training for module in net.modules())


def test_refresh_copies_buffers():
    net = Buffered()
    frozen = freeze(net)
    net.shift += 1
    net.scale += 1
    refresh(frozen, net)
    assert torch.equal(frozen.shift, net.shift)
    assert torch.equal(frozen.scale, net.scale)


def test_base_is_refreshed():
    net = MLP((2,), (4,))
    frozen = freeze(net)
    net.fit_base(torch.randn(10, 2) + 5)
    refresh(frozen, net)
    x = torch.randn(3, 2)
    assert torch.equal(frozen(x), net(x).detach())


def test_copies_of_copies(made):
    net, x = made
    assert torch.equal(freeze(freeze(net))(x), freeze(net)(x))


def test_original_can_still_be_deep_copied_and_frozen_again(made):
    net, x = made
    freeze(net)
    twin = copy.deepcopy(net)
    train(twin, x)
    assert torch.equal(freeze(net)(x), read(net, x))
    assert torch.equal(freeze(twin)(x), read(twin, x))


def test_dropout_is_off_in_the_copy():
    net, x = with_dropout().train(), torch.randn(5, 4)
    frozen = freeze(net)
    assert torch.equal(frozen(x), frozen(x))
    assert torch.equal(frozen(x), read(net, x))


def test_gradient_in_x_is_the_original_s(made):
    net, x = made
    one, two = x.clone().requires_grad_(), x.clone().requires_grad_()
    freeze(net)(one).sum().backward()
    net.eval()(two).sum().backward()
    torch.testing.assert_close(one.grad, two.grad)
