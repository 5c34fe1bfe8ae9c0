import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from adance.energies import ClassConditionalResNet, ConvNet, ResNet, freeze
from adance.energies.energy import energy_and_gradient
from adance.energies.fast import fast_copy
from adance.errors import InputError
from adance.training.speed import gradient_flops


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(8, 40), st.integers(8, 40), st.sampled_from([0.1, 0.25]))
def test_every_image_of_8_pixels_or_more_has_one_energy(channels, height, width, factor):
    shape = (channels, height, width)
    net = ResNet(shape, factor)
    assert net(torch.zeros(2, *shape)).shape == (2,)
    assert net.net[-3].in_features <= 16 * round(192 * factor)


@pytest.mark.parametrize("side", [8, 16, 128])
def test_features_are_halved_down_to_4_pixels(side):
    sides = []
    net = ResNet((3, side, side), 0.05)
    net.net[-4].register_forward_hook(lambda layer, x, y: sides.append(tuple(x[0].shape[2:])))
    net(torch.zeros(1, 3, side, side))
    assert sides == [(4, 4)]


def test_energies_of_images_do_not_depend_on_each_other():
    x = torch.randn(5, 1, 12, 9, generator=torch.Generator().manual_seed(0))
    net = ResNet((1, 12, 9), 0.2)
    assert torch.allclose(net(x), torch.cat([net(row[None]) for row in x]), atol=1e-6)


def test_size_and_arithmetic_are_as_documented():
    net, x = ResNet((3, 32, 32)), torch.zeros(1, 3, 32, 32)
    assert sum(weight.numel() for weight in net.parameters()) == pytest.approx(1.3e6, rel=0.05)
    assert gradient_flops(net, x) == pytest.approx(113e6, rel=0.01)
    assert gradient_flops(ConvNet((3, 32, 32), "C"), x) / gradient_flops(net, x) == pytest.approx(4, rel=0.05)


def test_the_chain_s_copy_has_the_same_gradients():
    net, x = freeze(ResNet((3, 16, 16), 0.2)), torch.randn(4, 3, 16, 16)
    for ours, plain in zip(energy_and_gradient(fast_copy(net), x), energy_and_gradient(net, x), strict=True):
        assert torch.allclose(ours, plain, atol=1e-5)


def test_spectral_normalization_reaches_every_layer():
    net = ResNet((1, 8, 8), 0.2, spectral_norm=True)
    layers = [layer for layer in net.modules() if isinstance(layer, (nn.Conv2d, nn.Linear))]
    assert len(layers) == 8
    for layer in layers:
        assert torch.linalg.matrix_norm(layer.weight.flatten(1), 2).item() == pytest.approx(1, abs=0.1)


def test_a_class_chooses_the_output():
    net, x = ClassConditionalResNet((1, 8, 8), classes=3, width=0.1), torch.randn(4, 1, 8, 8)
    by_class = torch.stack([net(x, torch.full((4,), label)) for label in range(3)], 1)
    assert torch.equal(by_class, net.net(x))
    assert torch.equal(net(x), by_class.amin(1))
    with pytest.raises(InputError, match="held-out labels are 0 to 3, but the energy has classes 0 to 2"):
        net.check_labels(torch.tensor([0, 3]), "held-out")


@pytest.mark.parametrize("shape", [(1, 7, 8), (1, 8, 129), (64,), (8, 8)])
def test_other_events_are_refused(shape):
    with pytest.raises(InputError, match="images \\(C, H, W\\) with sides of 8 to 128 pixels"):
        ResNet(shape)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"width": 0}, "width"), ({"activation": "tanh"}, "unknown activation"), ({"classes": 1}, "at least 2")],
)
def test_other_settings_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        ClassConditionalResNet((1, 8, 8), **wrong)
