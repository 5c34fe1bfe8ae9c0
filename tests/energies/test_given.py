import copy
import math

import pytest
import torch
from torch import nn

from adance import AdaNCE, InputError
from adance.energies import Given
from adance.samplers import MALA, run_chains


class Shifted(nn.Module):
    """``E(x | z) = ½(x − wz)²``, of which w is learned."""

    def __init__(self, w=0.0):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(w))

    def forward(self, x, z):
        return 0.5 * (x - self.w * z).square().sum(1)


def test_one_condition_or_one_for_each_row():
    x, z = torch.tensor([[1.0], [2.0], [4.0], [8.0]]), torch.tensor([[1.0], [3.0]])
    assert Given(Shifted(2.0), z[:1])(x).tolist() == [0.5, 0.0, 2.0, 18.0]
    assert Given(Shifted(2.0), z)(x).tolist() == [0.5, 8.0, 2.0, 2.0]
    with pytest.raises(InputError, match="3 rows cannot be given 2 conditions"):
        Given(Shifted(), z)(x[:3])


def test_copies_share_the_condition_and_not_the_weights():
    energy = Given(Shifted(1.0), torch.zeros(1, 1))
    frozen = copy.deepcopy(energy)
    energy.condition(torch.ones(1, 1))
    with torch.no_grad():
        energy.energy.w.fill_(5.0)
    assert frozen(torch.ones(1, 1)).item() == 0.0
    assert list(energy.state_dict()) == ["energy.w"]


def test_samples_have_the_conditional_law(generator):
    n = 20_000
    z = torch.linspace(-3, 3, n)[:, None]
    chains = run_chains(MALA(40, 0.5), Given(Shifted(2.0), z), torch.zeros(n, 1), generator=generator)
    residual = chains.x - 2 * z
    assert abs(residual.mean()) < 5 / math.sqrt(n)
    assert abs(residual.var() - 1) < 5 * math.sqrt(2 / n)


@pytest.mark.parametrize(("interval", "noises"), [(1, 1), (5, 2)])
def test_an_objective_learns_it_from_pairs(interval, noises, generator):
    energy = Given(Shifted(), torch.zeros(1, 1))
    objective = AdaNCE(
        MALA(6, 0.5), interval=interval, ratio_temperature=1.0, margin=0.0, pool=0, start="data", noises=noises
    )
    optimizer = torch.optim.Adam(energy.parameters(), 0.1)
    tail = []
    for step in range(1, 121):
        z = torch.randn(64, 1, generator=generator)
        x = 1.5 * z + torch.randn(64, 1, generator=generator)
        energy.condition(z)
        optimizer.zero_grad()
        objective.loss(energy, x, generator).value.backward()
        optimizer.step()
        objective.after_step(energy, step)
        if step > 60:
            tail.append(energy.energy.w.item())
    assert sum(tail) / len(tail) == pytest.approx(1.5, abs=0.1)
