"""Kernels of binary units against enumeration: exact transition matrices, detailed balance (2.1), and frequencies."""

import pytest
import torch
from laws import bits, probabilities
from scipy.stats import chi2

from adance.errors import InputError
from adance.samplers import (
    BlockGibbs,
    Flip,
    Gibbs,
    GibbsWithGradients,
    MetropolisHastings,
    Tempering,
    run_chains,
)

D = 4
COUPLINGS = torch.tensor(
    [[0.0, 1.0, -0.7, 0.2], [1.0, 0.0, 0.5, -0.9], [-0.7, 0.5, 0.0, 0.4], [0.2, -0.9, 0.4, 0.0]], dtype=torch.float64
)
FIELD = torch.tensor([0.5, -0.3, 0.1, -0.8], dtype=torch.float64)


def pairwise(x):
    x = x.flatten(1)
    return -0.5 * ((x @ COUPLINGS.to(x)) * x).sum(1) - x @ FIELD.to(x)


class Machine:
    """The same energy with its conditionals, and blocks of units that are joined neither here nor there."""

    def __init__(self, low, with_blocks=False):
        self.low = low
        if with_blocks:
            self.blocks = lambda: list(torch.arange(D)[:, None])

    def __call__(self, x):
        return pairwise(x)

    def conditional_logits(self, x, units):
        return (1 - self.low) * (x.flatten(1) @ COUPLINGS.to(x)[:, units] + FIELD.to(x)[units])


def index_of(x, values):
    """The number of each state of ``x`` in the order of ``bits``."""
    digits = (x.flatten(1) == values[1]).long()
    return (digits * 2 ** torch.arange(D - 1, -1, -1)).sum(1)


def single_flip(states, i):
    """Numbers of the states with unit i flipped."""
    return torch.arange(len(states)) ^ (1 << (D - 1 - i))


def heat_bath(states, i, T):
    """The matrix ``K[x, x']`` of drawing unit i given the others."""
    energies, other = pairwise(states), single_flip(states, i)
    taken = torch.sigmoid((energies - energies[other]) / T)
    K = torch.diag(1 - taken)
    K[torch.arange(len(states)), other] = taken
    return K


def metropolis_matrix(states, q, T):
    """The Metropolis–Hastings matrix (2.2) of the proposals ``q[x, i]`` of single flips."""
    energies, K = pairwise(states), torch.zeros(len(states), len(states), dtype=torch.float64)
    rows = torch.arange(len(states))
    for i in range(D):
        other = single_flip(states, i)
        ratio = ((energies - energies[other]) / T).exp() * q[other, i] / q[rows, i]
        K[rows, other] = q[rows, i] * ratio.clamp(max=1)
    return K + torch.diag(1 - K.sum(1))


def with_gradients(states, values, T):
    """``q(i|x)`` of Gibbs with gradients."""
    gradient = -(states @ COUPLINGS) - FIELD
    return torch.softmax(-(sum(values) - 2 * states) * gradient / (2 * T), 1)


def same_counts(counts, expected, level):
    """A χ² test of each row of ``counts`` against ``expected``; states that can't be reached must not be."""
    assert (counts[expected < 1e-12] == 0).all()
    for row, right in zip(counts, expected, strict=True):
        likely = right > 1e-12
        statistic = ((row[likely] - right[likely]).square() / right[likely]).sum()
        assert chi2.sf(float(statistic), int(likely.sum()) - 1) > level / len(counts)


def transitions(kernel, energy, states, values, generator, n=4000):
    """Counts ``[x, x']`` of one step of the kernel from ``n`` chains at every state."""
    chains = run_chains(kernel, energy, states.repeat_interleave(n, 0), 1, generator=generator)
    ends = index_of(chains.x, values).view(len(states), n)
    return torch.stack([torch.bincount(row, minlength=len(states)) for row in ends]).double(), n


CASES = [((0.0, 1.0), 1.0), ((-1.0, 1.0), 1.0), ((-1.0, 1.0), 2.0)]


@pytest.mark.parametrize(("values", "T"), CASES)
def test_metropolis_flips_have_their_matrix_and_detailed_balance(values, T, generator):
    states = bits(D, values)
    K = metropolis_matrix(states, torch.full((2**D, D), 1 / D, dtype=torch.float64), T)
    counts, n = transitions(MetropolisHastings(Flip(values), 1, T), pairwise, states, values, generator)
    check_balance(K, probabilities(pairwise, states, T))
    same_counts(counts, n * K, 1e-4)


@pytest.mark.parametrize(("values", "T"), CASES)
def test_gibbs_with_gradients_has_its_matrix_and_detailed_balance(values, T, generator):
    states = bits(D, values)
    K = metropolis_matrix(states, with_gradients(states, values, T), T)
    counts, n = transitions(GibbsWithGradients(1, T, values), pairwise, states, values, generator)
    check_balance(K, probabilities(pairwise, states, T))
    same_counts(counts, n * K, 1e-4)


def check_balance(K, p):
    """π(x) K(x'|x) = π(x') K(x|x')  (2.1)."""
    flow = p[:, None] * K
    torch.testing.assert_close(flow, flow.T, rtol=0, atol=1e-14)
    torch.testing.assert_close(p @ K, p, rtol=0, atol=1e-14)


def energies_of(values):
    return {"differences": pairwise, "logits": Machine(values[0])}


@pytest.mark.parametrize("how", ["differences", "logits"])
@pytest.mark.parametrize(("values", "T"), CASES)
def test_one_gibbs_draw_has_detailed_balance_and_a_sweep_only_invariance(values, T, how, generator):
    states, energy = bits(D, values), energies_of(values)[how]
    p, sweep = probabilities(pairwise, states, T), torch.eye(2**D, dtype=torch.float64)
    for i in range(D):
        K = heat_bath(states, i, T)
        check_balance(K, p)
        sweep = sweep @ K
    torch.testing.assert_close(p @ sweep, p, rtol=0, atol=1e-14)
    flow = p[:, None] * sweep
    assert (flow - flow.T).abs().max() > 1e-3
    first, n = transitions(Gibbs(1, T, updates=1, values=values), energy, states, values, generator)
    same_counts(first, n * heat_bath(states, 0, T), 1e-4)
    swept, n = transitions(Gibbs(1, T, values=values), energy, states, values, generator)
    same_counts(swept, n * sweep, 1e-4)


def test_a_random_scan_draws_every_unit_alike(generator):
    states, seen, steps = bits(D), torch.zeros(2**D, 2**D, dtype=torch.float64), 400
    for _ in range(steps):
        counts, n = transitions(Gibbs(1, scan="random", updates=1), pairwise, states, (0.0, 1.0), generator, 50)
        seen += counts / n
    right = sum(heat_bath(states, i, 1.0) for i in range(D)) / D
    # one unit for all chains of a step, so 400 coins of probability ¼ at most decide an entry: five deviations of each
    assert ((seen / steps - right).abs() < 5 * (0.25 / steps) ** 0.5).all()
    assert (seen[right == 0] == 0).all()


@pytest.mark.parametrize("values", [(0.0, 1.0), (-1.0, 1.0)])
@pytest.mark.parametrize(
    "kernel",
    [
        lambda v: Gibbs(5),
        lambda v: Gibbs(5, scan="random"),
        lambda v: BlockGibbs(5),
        lambda v: GibbsWithGradients(15),
        lambda v: MetropolisHastings(Flip(v), 15),
    ],
    ids=["systematic", "random", "block", "with-gradients", "flips"],
)
def test_exact_samples_stay_exact(kernel, values, generator):
    states, n = bits(D, values), 20_000
    p = probabilities(pairwise, states)
    start = states[torch.multinomial(p, n, replacement=True, generator=generator)].view(n, 2, 2)
    end = run_chains(kernel(values), Machine(values[0], with_blocks=True), start, generator=generator).x
    assert end.shape == start.shape
    assert not torch.equal(start, end)
    same_counts(torch.bincount(index_of(end, values), minlength=2**D).double()[None], n * p[None], 1e-4)


@pytest.mark.parametrize(
    "kernel",
    [Gibbs(20), Gibbs(80, updates=1), GibbsWithGradients(40), Tempering(Gibbs(40, updates=2), (1.0, 2.0))],
)
def test_chains_come_to_the_enumerated_law(kernel, generator):
    n, states = 10_000, bits(D)
    end = run_chains(kernel, pairwise, torch.zeros(n, D, dtype=torch.float64), generator=generator).x
    right = n * probabilities(pairwise, states)
    same_counts(torch.bincount(index_of(end, (0.0, 1.0)), minlength=2**D).double()[None], right[None], 1e-4)


def test_given_blocks_are_drawn_in_turn(generator):
    calls = []

    def block(name):
        def update(x, generator):
            calls.append(name)
            return x + 1

        return update

    chains = run_chains(BlockGibbs(2, [block("a"), block("b")]), pairwise, torch.zeros(3, D), generator=generator)
    assert calls == ["a", "b", "a", "b"]
    assert (chains.x == 4).all()


def test_an_energy_of_its_own_sweep_is_asked_at_the_temperature():
    class Swept:
        def __call__(self, x):
            return x.sum(1)

        def block_gibbs(self, x, generator, temperature):
            return torch.full_like(x, temperature)

    assert (run_chains(BlockGibbs(1, temperature=2.0), Swept(), torch.zeros(3, D)).x == 2).all()


def test_energies_without_blocks_are_refused():
    with pytest.raises(InputError, match="pairwise has neither block_gibbs"):
        run_chains(BlockGibbs(1), pairwise, torch.zeros(2, D))


@pytest.mark.parametrize("kernel", [Gibbs(1), GibbsWithGradients(1)])
def test_starts_of_other_values_are_refused(kernel):
    with pytest.raises(InputError, match="0 or 1"):
        run_chains(kernel, pairwise, -torch.ones(2, D))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gibbs(-1),
        lambda: Gibbs(temperature=0),
        lambda: Gibbs(updates=0),
        lambda: Gibbs(scan="both"),
        lambda: Gibbs(values=(1.0, 0.0)),
        lambda: GibbsWithGradients(temperature=-1),
        lambda: BlockGibbs(-1),
    ],
)
def test_bad_settings_are_refused(make):
    with pytest.raises(InputError):
        make()
