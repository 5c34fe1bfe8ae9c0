import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from adance.energies import ConvNet
from adance.errors import InputError

# Kernel, stride, padding, channels of each convolution, then the fully connected sizes: Table 5.1 of the thesis.
TABLE = {
    "A": ((1, 28, 28), [(3, 1, 1, 64), (4, 2, 1, 64), (4, 2, 1, 128), (3, 2, 1, 256), (4, 1, 0, 512)], [256, 1]),
    "B": ((3, 32, 32), [(3, 1, 1, 64), (4, 2, 1, 64), (4, 2, 1, 128), (4, 2, 1, 256), (4, 1, 0, 512)], [256, 1]),
    "C": (
        (3, 32, 32),
        [(3, 1, 1, 64), (4, 2, 1, 128), (4, 2, 1, 256), (4, 2, 1, 512), (4, 1, 0, 1024)],
        [512, 256, 1],
    ),
}


def layers(net, kind):
    return [layer for layer in net.modules() if isinstance(layer, kind)]


@pytest.mark.parametrize("name", TABLE)
def test_architectures_are_the_thesis_s(name):
    event, convolutions, linear = TABLE[name]
    net = ConvNet(event, name, spectral_norm=False)
    found = [(*c.kernel_size, *c.stride, *c.padding, c.out_channels) for c in layers(net, nn.Conv2d)]
    assert found == [(k, k, s, s, p, p, c) for k, s, p, c in convolutions]
    assert [layer.out_features for layer in layers(net, nn.Linear)] == linear
    # The last convolution leaves one pixel, so that the first linear layer sees its channels alone.
    assert layers(net, nn.Linear)[0].in_features == convolutions[-1][-1]
    assert [type(layer) for layer in net.net[1::2]][: len(convolutions)] == [nn.LeakyReLU] * len(convolutions)
    assert {layer.negative_slope for layer in layers(net, nn.LeakyReLU)} == {0.2}
    assert len(layers(net, nn.LeakyReLU)) == len(convolutions) + len(linear) - 1
    assert isinstance(net.net[-1], nn.Linear)


@pytest.mark.parametrize("name", ["A", "B", "C", "small"])
def test_one_energy_an_image(name):
    event = TABLE[name][0] if name in TABLE else (1, 8, 8)
    assert ConvNet(event, name, width=0.1)(torch.zeros(3, *event)).shape == (3,)


def test_every_layer_is_normalized_by_default():
    net = ConvNet((1, 8, 8))
    assert all(is_parametrized(layer, "weight") for layer in layers(net, (nn.Conv2d, nn.Linear)))
    for layer in layers(net, (nn.Conv2d, nn.Linear)):
        # torch starts with 15 cycles of the power iteration: not yet exact, but close.
        assert torch.linalg.matrix_norm(layer.weight.flatten(1), 2).item() == pytest.approx(1, abs=0.1)


def test_event_shape_chooses_the_architecture():
    assert layers(ConvNet((1, 28, 28), width=0.1), nn.Conv2d)[3].kernel_size == (3, 3)
    assert len(layers(ConvNet((3, 32, 32), width=0.1), nn.Linear)) == 3
    assert len(layers(ConvNet([1, 8, 8]), nn.Conv2d)) == 3


def test_width_scales_channels_and_hidden_units():
    net = ConvNet((1, 28, 28), width=0.25, spectral_norm=False)
    assert [layer.out_channels for layer in layers(net, nn.Conv2d)] == [16, 16, 32, 64, 128]
    assert [layer.out_features for layer in layers(net, nn.Linear)] == [64, 1]


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.integers(1, 64), min_size=1, max_size=4).filter(
        lambda e: e not in ([1, 28, 28], [3, 32, 32], [1, 8, 8])
    )
)
def test_other_events_are_refused(event):
    with pytest.raises(InputError) as caught:
        ConvNet(event)
    assert str(tuple(event)) in str(caught.value)


@pytest.mark.parametrize(("event", "name"), [((3, 32, 32), "A"), ((1, 28, 28), "B"), ((1, 28, 28), "D")])
def test_architectures_that_do_not_fit_are_refused(event, name):
    with pytest.raises(InputError, match=f"'{name}'"):
        ConvNet(event, name)
