import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adance.energies import MLP, Gaussian, Uniform
from adance.errors import InputError
from adance.objectives import AdaNCE, MaximumLikelihood, Setting
from adance.samplers import ChainStarts, ReplayBuffer


def prepared(kind, rejuvenation=0.25, capacity=1000, event=(2,)):
    rejuvenation = rejuvenation if kind == "rejuvenated" else 0.0
    return ChainStarts(Uniform(event), kind, rejuvenation, capacity, torch.Generator().manual_seed(9))


def test_a_hundred_draws_are_a_hundred_slots_and_results_go_back_to_them(generator):
    buffer = ReplayBuffer(torch.arange(1000.0)[:, None])
    slots, x = buffer.sample(100, generator)
    assert len(slots.unique()) == 100
    assert torch.equal(x[:, 0], slots.float())
    buffer.write(slots, -x - 1)
    right = torch.arange(1000.0)
    right[slots] = -right[slots] - 1
    assert torch.equal(buffer.samples[:, 0], right)


def test_all_slots_are_equally_likely(generator):
    # 4,000 draws of 5 of 20 slots: each is hit Binomial(4000, ¼) times; five standard deviations of 27.4.
    buffer = ReplayBuffer(torch.zeros(20, 1))
    hits = torch.stack([buffer.sample(5, generator)[0] for _ in range(4000)]).flatten().bincount(minlength=20)
    assert (hits - 1000).abs().max() < 5 * math.sqrt(4000 * 0.25 * 0.75)


def test_the_buffer_holds_a_copy():
    x = torch.zeros(5, 2)
    buffer = ReplayBuffer(x)
    x += 1
    assert buffer.samples.abs().sum() == 0


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 20), st.integers(0, 30), st.integers(0, 1000))
def test_draws_fit_the_buffer_or_are_refused(capacity, n, seed):
    buffer = ReplayBuffer(torch.zeros(capacity, 2))
    if n > capacity:
        with pytest.raises(InputError, match=rf"{n} chains.* {capacity}"):
            buffer.sample(n)
    else:
        slots, x = buffer.sample(n, torch.Generator().manual_seed(seed))
        assert (len(slots.unique()), x.shape) == (n, (n, 2))


def test_each_chain_restarts_on_its_own_coin(generator):
    starts = prepared("rejuvenated")
    starts.buffer.samples.fill_(7.0)
    fresh = torch.stack([starts.sample(50, generator=generator).x[:, 0] != 7 for _ in range(400)])
    # 20,000 coins of R = ¼: five standard deviations. One coin for the batch would make the counts 0 or 50, of
    # variance 470; own coins have 50·R(1 − R) = 9.4, known from 400 counts to a relative √(2/400).
    counts = fresh.sum(1).float()
    assert abs(counts.mean() / 50 - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 20_000)
    assert abs(counts.var() / (50 * 0.25 * 0.75) - 1) < 5 * math.sqrt(2 / 400)


def test_restarts_are_whole_events_uniform_over_the_range(generator):
    starts = prepared("rejuvenated", 1.0, 20_000, (1, 2, 2))
    starts.buffer.samples.fill_(0.5)
    x = starts.sample(20_000, generator=generator).x
    n = x.numel()
    assert (x != 0.5).flatten(1).all(1).float().mean() > 0.999
    assert -1 <= x.min() < -0.999
    assert 0.999 < x.max() <= 1
    assert abs(x.mean()) < 5 / math.sqrt(3 * n)
    assert abs(x.square().mean() - 1 / 3) < 5 * math.sqrt((1 / 5 - 1 / 9) / n)


def test_the_buffer_starts_as_noise():
    buffer = prepared("persistent", capacity=5000).buffer.samples
    assert (buffer.shape, len(buffer.unique(dim=0))) == ((5000, 2), 5000)
    assert abs(buffer.mean()) < 5 / math.sqrt(3 * buffer.numel())


def test_persistent_chains_never_restart(generator):
    starts = prepared("persistent")
    starts.buffer.samples.fill_(7.0)
    assert (starts.sample(1000, generator=generator).x == 7).all()


def test_chains_from_noise_keep_nothing(generator):
    starts = prepared("noise")
    assert starts.buffer is None
    (one, slots), (two, _) = starts.sample(20, generator=generator), starts.sample(20, generator=generator)
    assert slots is None
    assert not torch.isin(one, two).any()
    assert torch.equal(starts.store(one, torch.ones(20, dtype=torch.bool), slots, generator), one)


def test_chains_from_data_start_at_the_data_and_repeat_it():
    starts, data = prepared("data"), torch.randn(3, 2, requires_grad=True)
    x, slots = starts.sample(7, data)
    assert slots is None
    assert torch.equal(x, data.detach()[[0, 1, 2, 0, 1, 2, 0]])
    assert not x.requires_grad
    with pytest.raises(InputError, match="data"):
        starts.sample(7)


def test_ends_go_back_to_the_slots_and_broken_chains_do_not(generator):
    starts = prepared("rejuvenated")
    before = starts.buffer.samples.clone()
    slots = starts.sample(100, generator=generator).slots
    ends = torch.full((100, 2), 5.0)
    ends[[4, 30, 77]] = math.nan
    finite = ends.isfinite().all(1)
    back = starts.store(ends, finite, slots, generator)
    after = starts.buffer.samples
    assert torch.equal(after[slots], back)
    assert (back[finite] == 5).all()
    assert (back[~finite].abs() <= 1).all()
    others = torch.ones(1000, dtype=torch.bool)
    others[slots] = False
    assert torch.equal(after[others], before[others])


def test_broken_reweighted_chains_are_put_back_where_they_started(generator):
    starts = ChainStarts(Gaussian(torch.zeros(1), torch.ones(1)), "reweighted", capacity=10, generator=generator)
    x, slots = starts.sample(10, generator=generator)
    finite = torch.arange(10) % 2 == 0
    back = starts.store(torch.full((10, 1), 7.0), finite, slots, generator)
    assert torch.equal(back, torch.where(finite[:, None], 7.0, x))


def test_ends_go_to_the_slots_of_their_own_starts(generator):
    starts = prepared("persistent", capacity=20)
    one, two = starts.sample(10, generator=generator), starts.sample(10, generator=generator)
    finite = torch.ones(10, dtype=torch.bool)
    starts.store(torch.full((10, 2), 2.0), finite, two.slots, generator)
    starts.store(torch.full((10, 2), 1.0), finite, one.slots, generator)
    assert (starts.buffer.samples[one.slots] == 1).all()
    assert (starts.buffer.samples == 2).all(1).sum() == (~torch.isin(two.slots, one.slots)).sum()


def test_the_buffer_is_in_the_state(generator):
    starts = prepared("rejuvenated")
    starts.buffer.samples.uniform_(3, 4, generator=generator)
    other = prepared("rejuvenated")
    other.load_state_dict(starts.state_dict())
    assert torch.equal(other.buffer.samples, starts.buffer.samples)


def test_double_precision_buffers_stay_so(generator):
    law = Gaussian(torch.zeros(2, dtype=torch.float64), torch.ones(2))
    starts = ChainStarts(law, capacity=10, generator=generator)
    assert starts.sample(5, generator=generator).x.dtype == torch.float64


@pytest.mark.parametrize(
    "settings",
    [{"kind": "nowhere"}, {"rejuvenation": -0.1}, {"rejuvenation": 1.1}, {"kind": "persistent", "rejuvenation": 0.5}],
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError):
        ChainStarts(Uniform((2,)), **settings)


@pytest.mark.parametrize(("event", "share"), [((1, 2, 2), 0.25), ((3,), 0.02)])
def test_rejuvenation_by_default_is_by_the_kind_of_event(event, share):
    recipe = MaximumLikelihood(buffer=10)
    assert recipe.resolve(Setting(event, 8)).rejuvenation == share
    objective = recipe.build(MLP(event, (4,)), torch.rand(8, *event))
    assert objective.noise.chains.starts.rejuvenation == share


def test_a_buffer_grows_to_what_runs_at_a_time_unless_its_size_was_asked_for():
    def held(recipe, batch):
        noise = recipe.build(MLP((1,), (4,)), torch.rand(20, 1), batch_size=batch).noise
        return len(noise.chains.starts.buffer.samples)

    assert held(MaximumLikelihood(), 6000) == held(AdaNCE(pool=6000), 10) == 6000
    assert held(MaximumLikelihood(), 10) == 5000
    with pytest.raises(InputError, match="a buffer of 10 is smaller than the 20 chains that run at a time"):
        MaximumLikelihood(start="persistent", buffer=10).resolve(Setting((1,), 20))
    MaximumLikelihood(start="noise", buffer=10).resolve(Setting((1,), 20))  # without a buffer nothing is outgrown


@pytest.mark.parametrize("capacity", [0, -1, 7000.0, "5000", True])
def test_a_buffer_holds_a_whole_number_of_chains(capacity):
    with pytest.raises(InputError, match="buffer must be a whole number of at least 1"):
        ChainStarts(Uniform((1,)), capacity=capacity)
