import re

import pytest
import torch
from torch import nn

from adance.energies import MLP, ConvNet, energy_and_gradient, freeze, refresh
from adance.energies.fast import chain_copy, fast_copy
from adance.energies.layers import FastConv2d


def agree(energy, x, dtype=None, **tolerances):
    plain = freeze(energy)
    for one, other in zip(energy_and_gradient(fast_copy(plain, dtype), x), energy_and_gradient(plain, x), strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, **tolerances)


@pytest.mark.parametrize(
    ("shape", "net"),
    [
        ((1, 8, 8), lambda shape: ConvNet(shape)),
        ((1, 28, 28), lambda shape: ConvNet(shape, width=0.1)),
        ((3, 32, 32), lambda shape: ConvNet(shape, "C", width=0.05)),
        ((1, 8, 8), lambda shape: MLP(shape, [32])),
        ((3,), lambda shape: MLP(shape, [32])),
    ],
)
def test_energy_and_gradient_are_those_of_the_plain_copy(shape, net):
    agree(net(shape).double(), torch.randn(5, *shape, dtype=torch.float64), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(3, 4, (5, 6)),  # covers its input
        nn.Conv2d(3, 4, (5, 6), bias=False),
        nn.Conv2d(3, 4, (9, 8), padding=(2, 1)),  # covers its padded input
        nn.Conv2d(3, 4, 7, 3, padding=(2, 1)),  # reaches beyond it
        nn.Conv2d(3, 4, 4, 9),  # one position, and not all of the input
        nn.Conv2d(3, 4, 1, 20, padding=2),  # one position, on the padding alone
        nn.Conv2d(3, 4, 3, padding=1),  # few inputs
        nn.Conv2d(3, 4, (2, 3), (2, 1), padding=(0, 2)),
        nn.Conv2d(3, 4, (4, 3), (2, 3), padding=(1, 0)),  # many inputs
        nn.Conv2d(3, 4, 3, dilation=2),
        nn.Conv2d(3, 6, 3, groups=3),
        nn.Conv2d(3, 4, 3, padding="same"),
        nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"),
    ],
)
def test_any_convolution(layer):
    class Summed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer.double()

        def forward(self, x):
            return self.layer(x).sin().flatten(1).sum(1)

    agree(Summed(), torch.randn(4, 3, 5, 6, dtype=torch.float64), rtol=1e-11, atol=1e-12)


def test_our_own_convolutions_are_torchs():
    energy, x = ConvNet((1, 8, 8)).double(), torch.randn(5, 1, 8, 8, dtype=torch.float64)
    plain = freeze(energy)
    for layer in plain.modules():
        if type(layer) is FastConv2d:
            layer.__class__ = nn.Conv2d
    for one, other in zip(energy_and_gradient(energy.eval(), x), energy_and_gradient(plain, x), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-13)


def test_bfloat16_multiplies_alone():
    x = torch.randn(6, 1, 8, 8)
    agree(ConvNet((1, 8, 8)), x, torch.bfloat16, rtol=0.05, atol=0.01)
    fast = fast_copy(freeze(ConvNet((1, 8, 8))), torch.bfloat16)
    assert all(parameter.dtype == torch.bfloat16 for parameter in fast.parameters())
    # the base term of a vector's energy is no product of matrices: it stays exact
    energy = MLP((2,), [8], base=True)
    with torch.no_grad():
        energy.net[-1].weight.zero_()
        energy.net[-1].bias.zero_()
    agree(energy, torch.randn(6, 2), torch.bfloat16, rtol=0, atol=0)


def test_a_refresh_reaches_it_and_the_plain_copy_is_left_alone():
    energy = nn.Sequential(nn.Conv2d(1, 4, 3), nn.SiLU(), nn.Conv2d(4, 1, 6), nn.Flatten(0))
    x = torch.randn(6, 1, 8, 8)
    plain = freeze(energy)
    fast = fast_copy(plain)
    assert any(isinstance(layer, FastConv2d) for layer in fast.modules())
    assert not any(isinstance(layer, FastConv2d) for layer in plain.modules())
    before = plain(x)
    with torch.no_grad():
        for parameter in energy.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    refresh(fast, freeze(energy))
    torch.testing.assert_close(fast(x), freeze(energy)(x))
    assert torch.equal(plain(x), before)
    assert not torch.allclose(fast(x), before, atol=1e-3)


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_thin_weights_lie_by_columns_and_are_refreshed_there(dtype):
    energy = MLP((2,), [8])
    plain = freeze(energy)
    fast = fast_copy(plain, dtype)
    first, *_, last = (layer.weight for layer in fast.modules() if isinstance(layer, nn.Linear))
    assert first.stride() == (1, 8)
    assert last.stride() == (8, 1)
    with torch.no_grad():
        weight = next(layer.weight for layer in energy.modules() if isinstance(layer, nn.Linear))
        weight.add_(1)
    refresh(plain, energy)
    refresh(fast, plain)
    assert first.stride() == (1, 8)
    torch.testing.assert_close(first, weight.detach().to(first.dtype))


@pytest.mark.parametrize(
    "options", [{}, {"padding_mode": "reflect"}, {"dilation": 2}, {"groups": 2}, {"padding": "same"}], ids=str
)
def test_our_convolution_is_torchs_whatever_it_is_given(options):
    torch.manual_seed(0)
    given = {"padding": 1} | options
    ours, torchs = FastConv2d(4, 6, 3, **given), nn.Conv2d(4, 6, 3, **given)
    torchs.load_state_dict(ours.state_dict())
    x = torch.randn(5, 4, 7, 7)
    torch.testing.assert_close(ours(x), torchs(x))
    torch.testing.assert_close(ours(x[0]), torchs(x[0]))  # without a batch
    torch.testing.assert_close(torch.vmap(ours)(x), torchs(x))
    torch.testing.assert_close(fast_copy(freeze(ours))(x), torchs(x))


class Viewing(nn.Module):
    """Takes what a convolution returns for contiguous."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(1, 64, 3)

    def forward(self, x):
        return self.layer(x).view(len(x), -1).square().sum(1)


class Tied(nn.Module):
    """Uses a layer's weight by itself."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(20, 30)

    def forward(self, x):
        return (x - nn.functional.linear(torch.tanh(self.layer(x)), self.layer.weight.T)).square().sum(1)


@pytest.mark.parametrize(
    ("energy", "shape", "dtype", "expected"),
    [
        (Viewing(), (1, 8, 8), None, r"Viewing cannot use the optimized layers \(view size"),
        (Tied(), (20,), torch.bfloat16, r"Tied cannot use bfloat16 \(.*dtype"),
        (Tied(), (20,), None, None),
    ],
)
def test_a_net_that_refuses_what_is_faster_gets_a_copy_that_works(energy, shape, dtype, expected, recwarn):
    x, plain = torch.randn(6, *shape), freeze(energy)
    copied = chain_copy(plain, x, dtype)
    for one, other in zip(energy_and_gradient(copied, x), energy_and_gradient(plain, x), strict=True):
        torch.testing.assert_close(one, other)
    assert copied is not plain
    assert len(recwarn) == (expected is not None)
    assert expected is None or re.match(expected, str(recwarn[0].message))


def test_a_net_that_works_gets_what_was_asked_for(recwarn):
    plain = freeze(ConvNet((1, 8, 8)))
    assert next(chain_copy(plain, torch.randn(3, 1, 8, 8), torch.bfloat16).parameters()).dtype == torch.bfloat16
    assert not recwarn
