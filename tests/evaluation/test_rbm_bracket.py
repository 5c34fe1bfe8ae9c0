"""Annealing is not bound to gradients: a binary model, a kernel that flips units, and log Z by enumeration."""

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from adance.evaluation.ais import Bridge, plan
from adance.evaluation.log_z import bracket_log_z
from adance.samplers.kernel import Kernel, StepInfo

VISIBLE, HIDDEN = 10, 6


class Coins:
    """Fair, independent units in {0, 1}."""

    def sample(self, n, generator=None):
        return torch.randint(2, (n, VISIBLE), generator=generator).float()

    def log_prob(self, x):
        return x.new_full((len(x),), -VISIBLE * math.log(2))


class FlipState(NamedTuple):
    x: Tensor


class Flips(Kernel):
    """Metropolis steps that flip one unit of each chain."""

    temperature = 1.0

    def __init__(self, steps=VISIBLE):
        self.steps = steps

    def init(self, energy, x, step_size=None):
        return FlipState(x)

    def step(self, energy, state, generator=None):
        x, rows = state.x, torch.arange(len(state.x))
        units = torch.randint(VISIBLE, (len(x),), generator=generator)
        proposal = x.clone()
        proposal[rows, units] = 1 - x[rows, units]
        before = energy(x)
        accepted = torch.rand(len(x), generator=generator).log() < before - energy(proposal)
        return FlipState(torch.where(accepted[:, None], proposal, x)), StepInfo(before, None, accepted)


@pytest.fixture
def machine(generator):
    """The free energy of a restricted Boltzmann machine."""
    weights = torch.randn(VISIBLE, HIDDEN, generator=generator)
    bias, hidden_bias = torch.randn(VISIBLE, generator=generator), torch.randn(HIDDEN, generator=generator)

    def free_energy(x):
        return -(x @ bias) - torch.nn.functional.softplus(x @ weights + hidden_bias).sum(1)

    return free_energy


def test_the_bracket_of_an_rbm_holds_its_enumerated_log_z(machine, generator):
    states = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * VISIBLE)
    log_p = -machine(states).double()
    exact = states[torch.multinomial(log_p.softmax(0), 500, replacement=True, generator=generator)]
    bridge = Bridge(machine, Coins())
    schedule = plan(bridge, Flips(), target=0.995, generator=generator)
    found = bracket_log_z(bridge, exact, exact=True, schedule=schedule, generator=generator)
    assert found.lower < float(log_p.logsumexp(0)) < found.upper
    assert found.width < 0.3
    assert found.closed
