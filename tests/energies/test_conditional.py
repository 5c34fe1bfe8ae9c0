import copy
import math

import torch

from adance.energies import MLP
from adance.energies.conditional import Completion
from adance.samplers import MALA, run_chains


def test_kept_coordinates_are_replaced():
    kept = torch.tensor([True, False])
    completion = Completion(lambda x: x.sum(1), torch.tensor([[1.0, 9.0], [2.0, 9.0]]), kept)
    x = torch.tensor([[5.0, 6.0], [7.0, 8.0]])
    assert completion.complete(x).tolist() == [[1.0, 6.0], [2.0, 8.0]]
    assert completion(x).tolist() == [7.0, 10.0]


def test_samples_have_the_conditional_law(generator):
    # A normal law of correlation ρ = 0.8: given x₁ = 2, x₂ has mean 2ρ and variance 1 − ρ². Five standard errors.
    n, rho = 20_000, 0.8
    precision = torch.linalg.inv(torch.tensor([[1.0, rho], [rho, 1.0]]))
    completion = Completion(
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
    completion = Completion(net, torch.zeros(1, 2, 2), torch.tensor([True, False]))
    run_chains(MALA(3), completion, torch.zeros(4, 1, 2, 2), generator=generator)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(module.training for module in net.modules())
