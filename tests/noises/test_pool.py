import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from adance.noises import Snapshot
from adance.noises.pool import Pool
from adance.objectives import AdaNCE
from adance.samplers import ChainStarts, Langevin


def seed(number):
    return torch.Generator().manual_seed(number)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 8), st.integers(0, 2**31))
def test_energies_are_recalled_for_the_samples_taken(room, size, batch, number):
    size = min(room, size)
    batch = min(batch, size)
    pool, generator = Pool(torch.zeros(room, 1)), seed(number)
    samples = torch.arange(size, dtype=torch.float32)[:, None]
    pool.fill(samples, generator)
    evaluated = 0
    for _ in range(3 * size // batch + 1):
        x = pool.take(batch, generator)
        if pool.energies_known:
            assert torch.equal(pool.recall(), 10 * x[:, 0])
        else:
            pool.remember(10 * x[:, 0])
            evaluated += batch
    if size % batch == 0:
        assert evaluated == size
    pool.fill(samples, generator)
    assert not pool.energies_known


def test_energies_that_were_not_remembered_are_not_recalled():
    pool = Pool(torch.zeros(4, 1))
    pool.fill(torch.ones(4, 1), None)
    pool.take(2, None)
    pool.take(2, None)
    pool.remember(torch.ones(2))
    pool.take(2, None)
    assert not pool.energies_known


def test_state_goes_on_exactly():
    one, two = Pool(torch.zeros(6, 1)), Pool(torch.zeros(6, 1))
    one.fill(torch.rand(4, 1), seed(1))
    for _ in range(2):
        one.remember(one.take(2, seed(2))[:, 0])
    two.load_state_dict(one.state_dict())
    for _ in range(5):
        assert torch.equal(one.take(2, seed(3)), two.take(2, seed(3)))
        assert two.energies_known
        assert torch.equal(one.recall(), two.recall())


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
    objective = AdaNCE(
        Langevin(2, 0.1), 9, 1.0, pool=24, start="rejuvenated", buffer=48, snapshots=snapshots, centre=False
    )
    objective.prepare(energy, data, generator=generator)
    optimizer = torch.optim.Adam(energy.parameters(), 1e-2)
    frozen = objective.noise.frozen
    for step in range(1, 19):
        seen_before = len(frozen.rows)
        loss = objective.loss(energy, data, generator)
        seen = frozen.rows[seen_before:]
        first = (step - 1) % 9
        pools = 1 if step < 10 else min(snapshots, 2)
        assert seen[-1] == (16 if first < 3 * pools else 8)
        noise = objective.noise.pool.samples[objective.noise.pool._last_taken]
        with torch.no_grad():
            expected = objective.noise.energy(torch.cat([data, noise]), None)
        kept = objective.noise.energy_of_batch(torch.cat([data, noise]), len(data), expected)
        torch.testing.assert_close(kept, expected, rtol=0, atol=1e-6)
        if first == 0 and snapshots == 1:
            assert loss.metrics["ratio_std"] == 0
        optimizer.zero_grad()
        loss.value.backward()
        optimizer.step()
        objective.after_step(energy, step)


def test_a_fresh_batch_every_step_is_always_evaluated():
    noise = Snapshot(Langevin(2, 0.1), ChainStarts("noise"), 9, pool=0)
    energy, data = Counting(), torch.randn(8, 2, generator=seed(0))
    noise.prepare(energy, data, 8, seed(1))
    for _ in range(3):
        both = torch.cat([data, noise.draw(8, data, seed(2))])
        assert torch.equal(noise.energy_of_batch(both, 8, data[:, 0]), noise.frozen(both))
