import copy
import math

import pytest
import torch
from torch import nn

from adance import AdaNCE, InputError
from adance.energies import MLP, ClassConditionalMLP, freeze
from adance.energies.conditional import ConditionalEnergy, given, needs_condition, takes_condition
from adance.energies.fast import chain_copy
from adance.energies.inpainting import InpaintingEnergy
from adance.samplers import MALA, run_chains


class Shifted(nn.Module):
    """``E(x | z) = ½(x − wz)²``, of which w is learned."""

    def __init__(self, w=0.0):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(w))

    def forward(self, x, condition):
        return 0.5 * (x - self.w * condition).square().sum(1)


def test_kept_coordinates_are_replaced():
    kept = torch.tensor([True, False])
    completion = InpaintingEnergy(lambda x: x.sum(1), torch.tensor([[1.0, 9.0], [2.0, 9.0]]), kept)
    x = torch.tensor([[5.0, 6.0], [7.0, 8.0]])
    assert completion.complete(x).tolist() == [[1.0, 6.0], [2.0, 8.0]]
    assert completion(x).tolist() == [7.0, 10.0]


def test_samples_of_a_completion_have_the_conditional_law(generator):
    # A normal law of correlation ρ = 0.8: given x₁ = 2, x₂ has mean 2ρ and variance 1 − ρ². Five standard errors.
    n, rho = 20_000, 0.8
    precision = torch.linalg.inv(torch.tensor([[1.0, rho], [rho, 1.0]]))
    completion = InpaintingEnergy(
        lambda x: 0.5 * torch.einsum("bi,ij,bj->b", x, precision, x),
        torch.tensor([2.0, 0.0]),
        torch.tensor([True, False]),
    )
    x = completion.complete(run_chains(MALA(60, 0.15), completion, torch.zeros(n, 2), generator=generator).x)
    var = 1 - rho**2
    assert (x[:, 0] == 2).all()
    assert abs(x[:, 1].mean() - 2 * rho) < 5 * math.sqrt(var / n)
    assert abs(x[:, 1].var() - var) < 5 * var * math.sqrt(2 / n)


def test_sampling_leaves_a_net_inside_as_it_was(generator):
    net = MLP((1, 2, 2), (8,)).train()
    before = copy.deepcopy(net.state_dict())
    completion = InpaintingEnergy(net, torch.zeros(1, 2, 2), torch.tensor([True, False]))
    run_chains(MALA(3), completion, torch.zeros(4, 1, 2, 2), generator=generator)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(module.training for module in net.modules())


def test_one_condition_or_one_for_each_row():
    x, z = torch.tensor([[1.0], [2.0], [4.0], [8.0]]), torch.tensor([[1.0], [3.0]])
    assert ConditionalEnergy(Shifted(2.0), z[:1])(x).tolist() == [0.5, 0.0, 2.0, 18.0]
    assert ConditionalEnergy(Shifted(2.0), z)(x).tolist() == [0.5, 8.0, 2.0, 2.0]
    with pytest.raises(InputError, match="3 rows do not fit 2 conditions"):
        ConditionalEnergy(Shifted(), z)(x[:3])


def test_which_energies_take_a_condition_and_which_need_one():
    nets = Shifted(), ClassConditionalMLP((2,), 3, (4,)), MLP((2,), (4,)), given(Shifted(), torch.ones(1, 1))
    assert [takes_condition(net) for net in nets] == [True, True, False, False]
    assert [needs_condition(net) for net in nets] == [True, False, False, False]
    assert [takes_condition(freeze(net)) for net in nets] == [True, True, False, False]


def test_without_a_condition_it_is_the_energy_itself():
    net = ClassConditionalMLP((2,), 3, (4,))
    x = torch.randn(5, 2)
    assert given(net, None) is net
    every = torch.stack([given(net, torch.tensor([label]))(x) for label in range(3)])
    torch.testing.assert_close(net(x), every.amin(0))
    assert torch.equal(every[1], net(x, condition=torch.ones(5)))


def test_a_copy_has_its_own_weights():
    energy = given(Shifted(1.0), torch.ones(1, 1))
    frozen = copy.deepcopy(energy)
    with torch.no_grad():
        energy.energy.w.fill_(5.0)
    assert frozen(torch.ones(1, 1)).item() == 0.0
    assert list(energy.state_dict()) == ["energy.w"]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, freeze, lambda net: net])
def test_copies_at_two_conditions_do_not_affect_each_other(duplicate):
    """Each has the energies of its own class, regardless of the order in which they are made and called."""
    net, x = ClassConditionalMLP((2,), 3, (8,)), torch.randn(6, 2)
    right = [net(x, condition=torch.full((6,), label)).detach() for label in range(3)]
    copies = [given(duplicate(net), torch.tensor([label])) for label in range(3)]
    duplicates = [duplicate(one) for one in copies]
    for label in (0, 1, 0, 2, 1):
        assert torch.equal(copies[label](x).detach(), right[label])
        assert torch.equal(duplicates[label](x).detach(), right[label])
    copies[1].z.fill_(2)
    assert torch.equal(copies[0](x).detach(), right[0])
    assert torch.equal(net(x, condition=torch.zeros(6)).detach(), right[0])


def test_the_copy_that_chains_follow_serves_any_condition():
    net, x = ClassConditionalMLP((2,), 3, (8,)), torch.randn(6, 2)
    shared = chain_copy(freeze(net), x, condition=torch.zeros(6))
    for label in (0, 2, 1):
        z = torch.full((6,), label)
        torch.testing.assert_close(given(shared, z)(x), net(x, condition=z).detach())


def test_samples_at_a_condition_have_its_law(generator):
    n = 20_000
    z = torch.linspace(-3, 3, n)[:, None]
    chains = run_chains(MALA(40, 0.5), given(Shifted(2.0), z), torch.zeros(n, 1), generator=generator)
    residual = chains.x - 2 * z
    assert abs(residual.mean()) < 5 / math.sqrt(n)
    assert abs(residual.var() - 1) < 5 * math.sqrt(2 / n)


@pytest.mark.parametrize(("interval", "noises"), [(1, 1), (5, 2)])
def test_an_objective_learns_it_from_pairs(interval, noises, generator):
    energy = Shifted()
    recipe = AdaNCE(
        MALA(6, 0.5), interval=interval, ratio_temperature=1.0, margin=0.0, pool=0, start="data", noises=noises
    )
    objective = recipe.build(energy, torch.randn(64, 1), generator=generator, condition=torch.zeros(1, 1))
    optimizer = torch.optim.Adam(energy.parameters(), 0.1)
    tail = []
    for step in range(1, 121):
        z = torch.randn(64, 1, generator=generator)
        x = 1.5 * z + torch.randn(64, 1, generator=generator)
        optimizer.zero_grad()
        out = objective.loss(energy, x, generator, z)
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step, out)
        if step > 60:
            tail.append(energy.w.item())
    assert sum(tail) / len(tail) == pytest.approx(1.5, abs=0.1)
