import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from adance.energies import ConvNet, energy_and_gradient, eval_mode, evaluate
from adance.energies.energy import refuse_batch_norm, unwrap
from adance.errors import InputError


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 5), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(2, 4))
def test_only_one_number_a_row_is_an_energy(n, event, wide):
    x = torch.zeros(n, *event)
    assert evaluate(lambda x: x.flatten(1).sum(1), x).shape == (n,)
    for wrong in (lambda x: x.flatten(1).sum(1, keepdim=True), lambda x: x.sum(), lambda x: x.new_zeros(n * wide)):
        with pytest.raises(InputError) as caught:
            evaluate(wrong, x)
        for shape in (wrong(x).shape, x.shape, (n,)):
            assert str(tuple(shape)) in str(caught.value)


def test_gradient_is_the_energy_s_and_no_weight_gets_one():
    net = nn.Linear(3, 1, dtype=torch.float64)
    x = torch.randn(4, 3, dtype=torch.float64)
    with torch.no_grad():
        values, gradient = energy_and_gradient(lambda x: net(x).squeeze(1).exp(), x)
    torch.testing.assert_close(gradient, values[:, None] * net.weight.detach())
    assert not values.requires_grad
    assert not gradient.requires_grad
    assert not x.requires_grad
    assert net.weight.grad is None


def test_reading_gives_every_flag_back():
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(), nn.Linear(2, 1)))
    net[1].eval()
    before = [module.training for module in net.modules()]
    with eval_mode(net):
        assert not any(module.training for module in net.modules())
    assert [module.training for module in net.modules()] == before
    assert len(set(before)) == 2


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(4), nn.BatchNorm2d(4), nn.SyncBatchNorm(4), nn.LazyBatchNorm1d()])
def test_batch_normalization_is_refused_by_its_place(layer):
    with pytest.raises(InputError) as caught:
        refuse_batch_norm(nn.Sequential(nn.Linear(2, 4), nn.Sequential(layer)))
    assert f"1.0: {type(layer).__name__}" in str(caught.value)


def test_other_normalizations_are_not_refused():
    refuse_batch_norm(nn.Sequential(nn.Linear(2, 4), nn.LayerNorm(4), nn.GroupNorm(2, 4), nn.InstanceNorm1d(4)))
    refuse_batch_norm(ConvNet((1, 8, 8)))


def test_training_a_plain_function_is_refused():
    with pytest.raises(InputError, match="function"):
        unwrap(lambda x: x.sum(1))
