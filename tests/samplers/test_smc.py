"""Chains that follow a changing law by Jarzynski weights."""

import math

import pytest
import torch

from adance.energies import Gaussian
from adance.samplers import MALA, ReplayBuffer
from adance.samplers.smc import reweight_and_move

N = 5000


@pytest.mark.parametrize("shift", [2.0, 8.0])
def test_a_far_law_is_reached_in_parts(shift, generator):
    """From N(0, 1) to N(shift, ½²) in two axes, where weighting at once would leave next to nothing."""
    start, target = Gaussian(torch.zeros(2), torch.ones(2)), Gaussian(torch.full((2,), shift), torch.full((2,), 0.5))
    buffer = ReplayBuffer(start.sample(N, generator))
    found = reweight_and_move(buffer, start.log_prob, target.log_prob, MALA(10, step_size=0.1), generator)
    assert found.share < 0.1
    assert found.gradients > 0
    # of at least a tenth of the chains that are independent: five standard errors
    error = 5 / math.sqrt(N / 10)
    assert (buffer.samples.mean(0) - shift).abs().max() < 0.5 * error
    assert (buffer.samples.var(0) / 0.25 - 1).abs().max() < math.sqrt(2) * error
    assert len(buffer.samples.unique(dim=0)) > N / 3


def test_a_near_law_takes_no_steps(generator):
    law, near = Gaussian(torch.zeros(2), torch.ones(2)), Gaussian(torch.full((2,), 0.3), torch.ones(2))
    buffer = ReplayBuffer(law.sample(N, generator))
    before = {tuple(row) for row in buffer.samples.tolist()}
    found = reweight_and_move(buffer, law.log_prob, near.log_prob, MALA(10), generator)
    assert (found.gradients, found.step_size) == (0, None)
    assert {tuple(row) for row in buffer.samples.tolist()} <= before
    # the share of N(m, 1) weighted to N(m + δ, 1) is e^{−|δ|²}, here e^{−0.18}
    assert found.share == pytest.approx(math.exp(-0.18), abs=0.03)


def test_laws_without_any_common_ground_end_all_the_same(generator):
    buffer = ReplayBuffer(torch.zeros(20, 1))
    reweight_and_move(buffer, lambda x: x[:, 0], lambda x: torch.full((len(x),), -math.inf), MALA(1), generator)
    assert (buffer.samples == 0).all()
