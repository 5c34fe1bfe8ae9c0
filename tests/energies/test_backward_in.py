import pytest
import torch
from torch import nn

from adance.contrasts import Logistic
from adance.energies import ConvNet, ResNet
from adance.energies.analytic import Gaussian
from adance.energies.layers import FastConv2d, backward_in
from adance.noises import FixedNoise
from adance.objectives.contrastive import Contrastive

NETS = [
    ((1, 8, 8), ConvNet((1, 8, 8))),
    ((3, 32, 32), ConvNet((3, 32, 32), width=0.1)),
    ((2, 12, 10), ResNet((2, 12, 10), width=0.2)),
]


def gradients(energy, x, weights, dtype):
    energy.zero_grad()
    with backward_in(energy, dtype):
        values = energy(x)
    (values * weights).sum().backward()
    return values.detach(), torch.cat([weight.grad.flatten() for weight in energy.parameters()])


@pytest.mark.parametrize(("shape", "energy"), NETS)
def test_bfloat16_moves_gradients_by_its_rounding_and_energies_not_at_all(shape, energy):
    energy.eval()
    x, weights = torch.randn(16, *shape), torch.randn(16)
    plain_energies, plain = gradients(energy, x, weights, None)
    energies, narrow = gradients(energy, x, weights, torch.bfloat16)
    assert torch.equal(energies, plain_energies)
    assert not torch.equal(narrow, plain)
    # a product is rounded by up to 2^-8 in each factor, in at most a dozen layers; errors have no common sign
    assert (narrow - plain).norm() < 12**0.5 * 2**-7 * plain.norm()


@pytest.mark.parametrize(("shape", "energy"), NETS)
def test_gradients_in_the_type_of_the_weights_are_those_of_torch(shape, energy):
    energy = energy.double().eval()
    x, weights = torch.randn(5, *shape, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    _, plain = gradients(energy, x, weights, None)
    _, same = gradients(energy, x, weights, torch.float64)
    torch.testing.assert_close(same, plain, rtol=1e-10, atol=1e-12)
    energy.float()


def test_second_derivatives_are_an_error():
    layer = FastConv2d(8, 4, 3)
    x = torch.randn(2, 8, 6, 6, requires_grad=True)
    with backward_in(layer, torch.bfloat16):
        values = layer(x).square().sum()
    (gradient,) = torch.autograd.grad(values, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_afterwards_layers_are_as_before_even_after_an_error():
    layer = FastConv2d(8, 4, 3)
    with pytest.raises(ValueError, match="lost"), backward_in(nn.Sequential(layer), torch.bfloat16):
        raise ValueError("lost")
    assert layer.backward_dtype is None


def test_an_objective_uses_it_and_its_loss_stays_the_same():
    energy = ConvNet((1, 8, 8)).eval()
    x, noise = torch.randn(32, 1, 8, 8), FixedNoise(Gaussian(torch.zeros(1, 8, 8), torch.ones(1, 8, 8)))
    found = []
    for dtype in (None, torch.bfloat16):
        energy.zero_grad()
        out = Contrastive(Logistic(), noise, backward_dtype=dtype).loss(energy, x, torch.Generator().manual_seed(0))
        out.value.backward()
        found.append((out.value.detach(), torch.cat([weight.grad.flatten() for weight in energy.parameters()])))
    (value, plain), (same, narrow) = found
    assert torch.equal(value, same)
    assert 0 < (narrow - plain).norm() < 12**0.5 * 2**-7 * plain.norm()
