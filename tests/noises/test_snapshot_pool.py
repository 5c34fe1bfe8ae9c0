"""Which energies of a snapshot's pool are computed, and when."""

import pytest
import torch
from snapshots import snapshot
from torch import nn

from adance.objectives import AdaNCE
from adance.samplers import Langevin


def seed(number):
    return torch.Generator().manual_seed(number)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 1))
        self.rows = []

    def forward(self, x):
        self.rows.append(len(x))
        return self.net(x)[:, 0]


@pytest.mark.parametrize("snapshots", [1, 3])
def test_each_pool_is_evaluated_once_for_each_snapshot(snapshots):
    """24 chains in batches of 8: the first three steps after a refresh evaluate noise too, later ones data alone."""
    energy, data, generator = Counting(), torch.randn(8, 2, generator=seed(0)), seed(1)
    recipe = AdaNCE(
        Langevin(2, 0.1),
        interval=9,
        ratio_temperature=1.0,
        pool=24,
        start="rejuvenated",
        buffer=48,
        snapshots=snapshots,
        center=False,
    )
    objective = recipe.build(energy, data, generator=generator)
    optimizer = torch.optim.Adam(energy.parameters(), 1e-2)
    noise, samples = objective.noise, []
    sample = noise.sample
    noise.sample = lambda *args: samples.append(sample(*args)) or samples[-1]
    for step in range(1, 19):
        seen_before = len(noise.frozen.rows)
        loss = objective.loss(energy, data, generator)
        seen = noise.frozen.rows[seen_before:]
        first = (step - 1) % 9
        pools = 1 if step < 10 else min(snapshots, 2)
        assert seen[-1] == (16 if first < 3 * pools else 8)
        both = torch.cat([data, samples[-1].x])
        with torch.no_grad():
            torch.testing.assert_close(noise.energy(both, samples[-1]), noise.energy(both), rtol=0, atol=1e-6)
        if first == 0 and snapshots == 1:
            assert loss.metrics["ratio_std"] == 0
        optimizer.zero_grad()
        loss.value.backward()
        optimizer.step()
        objective.after_step(energy, step, loss)


def test_a_fresh_batch_every_step_is_always_evaluated():
    data = torch.randn(8, 2, generator=seed(0))
    noise = snapshot(Counting(), data, Langevin(2, 0.1), start="noise", interval=9, generator=seed(1))
    for _ in range(3):
        sample = noise.sample(8, data, seed(2))
        both = torch.cat([data, sample.x])
        assert torch.equal(noise.energy(both, sample), noise.frozen(both))
