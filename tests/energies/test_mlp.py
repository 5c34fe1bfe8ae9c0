import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from adance.energies import MLP, energy_and_gradient
from adance.errors import InputError


def linears(net):
    return [layer for layer in net.modules() if isinstance(layer, nn.Linear)]


def test_defaults_for_vectors():
    net = MLP((3,))
    assert [type(layer).__name__ for layer in net.net] == ["Flatten"] + ["Linear", "SiLU"] * 3 + ["Linear"]
    assert [layer.out_features for layer in linears(net)] == [256, 256, 256, 1]
    assert not any(is_parametrized(layer) for layer in linears(net))
    assert net.base is not None


def test_defaults_for_images():
    net = MLP((1, 4, 4))
    layers = [type(layer) for layer in net.net]
    assert layers.count(nn.LeakyReLU) == 3
    assert {layer.negative_slope for layer in net.modules() if isinstance(layer, nn.LeakyReLU)} == {0.2}
    assert [layer.in_features for layer in linears(net)] == [16, 256, 256, 256]
    assert all(is_parametrized(layer, "weight") for layer in linears(net))
    assert net.base is None


def test_defaults_can_be_overruled():
    vector = MLP((3,), (4,), "relu", spectral_norm=True, base=False)
    assert vector.base is None
    assert all(is_parametrized(layer) for layer in linears(vector))
    image = MLP((1, 2, 2), [4], "softplus", spectral_norm=False, base=True)
    assert image.base is not None
    assert not any(is_parametrized(layer) for layer in linears(image))
    assert isinstance(image.net[2], nn.Softplus)


@settings(deadline=None, max_examples=20)
@given(
    st.integers(0, 4),
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple),
    st.lists(st.integers(1, 5), max_size=2),
    st.sampled_from([None, "leaky_relu", "relu", "silu", "softplus"]),
)
def test_one_energy_a_row(n, event, hidden, activation):
    assert MLP(event, hidden, activation)(torch.zeros(n, *event)).shape == (n,)


def test_base_is_added_and_the_net_sees_standardized_events():
    net, x = MLP((2,), (8,)), torch.randn(50, 2) * 3 + 1
    net.fit_base(x)
    z = (x - x.mean(0)) / (x - x.mean(0)).square().mean().sqrt()
    torch.testing.assert_close(net(x), net.net(z).squeeze(1) + 0.5 * z.square().sum(1))


def test_base_makes_the_energy_grow_like_a_square():
    # A net of linear growth cannot hold the mass at infinity: E(t·x)/t² tends to ½‖x/s‖².
    net, x = MLP((2,)).double(), torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    assert net(1e6 * x).item() / 1e12 == pytest.approx(12.5, rel=1e-4)


def test_fitting_without_a_base_does_nothing():
    net = MLP((1, 2, 2), (4,))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    net.fit_base(torch.randn(5, 1, 2, 2))
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_base_weights_are_state_but_not_trained():
    net = MLP((2,), (4,))
    assert {"base.center", "base.scale"} <= set(net.state_dict())
    assert not any("base" in name for name, _ in net.named_parameters())


def test_default_vector_energy_has_second_derivatives():
    net, x = MLP((2,)), torch.randn(1, 2)
    plain = net(x) - net.base(x)
    hessian = torch.autograd.functional.hessian(lambda x: (net(x) - net.base(x)).sum(), x)
    assert hessian.abs().max() > 0
    assert plain.shape == (1,)
    assert energy_and_gradient(net, x)[1].shape == (1, 2)


def test_unknown_activation_is_refused():
    with pytest.raises(InputError, match=r"tanh.*silu"):
        MLP((2,), activation="tanh")


@pytest.mark.parametrize("activation", ["leaky_relu", "relu", "silu", "softplus"])
def test_a_vector_net_keeps_the_signal_from_layer_to_layer(activation):
    net = MLP((4,), (2000, 2000, 2000), activation=activation).net
    x = torch.randn(500, 4, generator=torch.Generator().manual_seed(0))
    for layer in net:
        x = layer(x)
        if isinstance(layer, torch.nn.Linear) and layer.out_features > 1:
            assert 0.8 < x.std() < 2.5
