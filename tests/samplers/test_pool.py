import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adance.samplers.pool import Pool


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
        taken = pool.take(batch, generator)
        assert torch.equal(taken.x, pool.samples[taken.rows])
        if pool.energies_known:
            assert torch.equal(pool.recall(taken), 10 * taken.x[:, 0])
        else:
            pool.remember(taken, 10 * taken.x[:, 0])
            evaluated += batch
    if size % batch == 0:
        assert evaluated == size
    pool.fill(samples, generator)
    assert not pool.energies_known


def test_energies_that_were_not_remembered_are_not_recalled():
    pool = Pool(torch.zeros(4, 1))
    pool.fill(torch.ones(4, 1), None)
    pool.take(2, None)
    pool.remember(pool.take(2, None), torch.ones(2))
    pool.take(2, None)
    assert not pool.energies_known


def test_energies_belong_to_what_was_taken_not_to_what_was_taken_last():
    pool = Pool(torch.zeros(4, 1))
    pool.fill(torch.arange(4.0)[:, None], seed(0))
    one, two = pool.take(2, None), pool.take(2, None)
    pool.remember(one, 10 * one.x[:, 0])
    pool.remember(two, 10 * two.x[:, 0])
    assert torch.equal(pool.recall(one), 10 * one.x[:, 0])
    assert torch.equal(pool.energies, 10 * pool.samples[:, 0])


def test_state_goes_on_exactly():
    one, two = Pool(torch.zeros(6, 1)), Pool(torch.zeros(6, 1))
    one.fill(torch.rand(4, 1), seed(1))
    for _ in range(2):
        taken = one.take(2, seed(2))
        one.remember(taken, taken.x[:, 0])
    two.load_state_dict(one.state_dict())
    for _ in range(5):
        first, second = one.take(2, seed(3)), two.take(2, seed(3))
        assert torch.equal(first.x, second.x)
        assert two.energies_known
        assert torch.equal(one.recall(first), two.recall(second))
