import math

import pytest
import torch

from adance import InputError
from adance.configurable import build, describe
from adance.energies import (
    BlockSampled,
    Boltzmann,
    Conditionals,
    enumerate_distribution,
    flip_logits,
    freeze,
    log_likelihood,
)
from adance.energies.binary import all_states

UNITS = pytest.mark.parametrize("units", ["bit", "spin"])
HIDDEN = pytest.mark.parametrize("hidden", [0, 1, 3])


def sweeps(model, x, n, generator):
    for _ in range(n):
        x = model.block_gibbs(x, generator)
    return x


def machine(units, hidden, generator):
    model = Boltzmann((2, 2), hidden, units, std=0.7, generator=generator).double()
    with torch.no_grad():
        model.joint.bias.copy_(torch.randn(4 + hidden, generator=generator))
    return model


def joint(model):
    """Every (v, h) and their energies, as the thesis writes them."""
    both = all_states(4 + model.hidden, model.low, model.joint.bias)
    W, b = model.joint.couplings, model.joint.bias
    return both, torch.stack([-(0.5 * x @ W @ x + b @ x) for x in both])


@UNITS
@HIDDEN
def test_free_energy_and_conditionals_are_the_enumerated_ones(units, hidden, generator):
    model = machine(units, hidden, generator)
    both, energy = joint(model)
    v, h = both[:, :4].reshape(-1, 2, 2), both[:, 4:]
    torch.testing.assert_close(model.joint_energy(v, h), energy, atol=1e-12, rtol=0)
    table = energy.view(16, -1)
    vs, hs = v[:: 2**hidden], h[: 2**hidden]
    torch.testing.assert_close(model(vs), -(-table).logsumexp(1), atol=1e-12, rtol=0)
    torch.testing.assert_close(model.hidden_means(vs), (-table).softmax(1) @ hs, atol=1e-12, rtol=0)
    law = enumerate_distribution(model, (2, 2), units)
    torch.testing.assert_close(law.log_z, (-energy).logsumexp(0), atol=1e-12, rtol=0)
    right = flip_logits(model, vs, low=model.low)
    torch.testing.assert_close(model.conditional_logits(vs), right)
    some = torch.tensor([2, 0])
    torch.testing.assert_close(model.conditional_logits(vs, some), right.flatten(1)[:, some])


@UNITS
@HIDDEN
def test_likelihood_gradient_is_the_difference_of_the_phases(units, hidden, generator):
    model = machine(units, hidden, generator)
    both, energy = joint(model)
    data = both[:: 2**hidden, :4][torch.tensor([0, 3, 3, 14])].reshape(-1, 2, 2)
    log_likelihood(model, data, units).backward()
    given_v = (-energy.view(16, -1)).softmax(1)[torch.tensor([0, 3, 3, 14])]
    positive = torch.cat(
        [
            torch.cat([row.flatten().expand(2**hidden, 4), both[: 2**hidden, 4:]], 1) * p[:, None].sqrt()
            for row, p in zip(data, given_v, strict=True)
        ]
    )
    p = (-energy).softmax(0)
    phases = positive.T @ positive / 4 - both.T @ (p[:, None] * both)
    expected = 0.5 * phases.fill_diagonal_(0)
    torch.testing.assert_close(model.joint.weight.grad, expected, atol=1e-10, rtol=0)


@UNITS
@HIDDEN
def test_block_gibbs_keeps_the_enumerated_law_and_finds_its_marginals(units, hidden, generator):
    model = machine(units, hidden, generator)
    law = enumerate_distribution(model, (2, 2), units)
    n = 10_000
    kept = sweeps(model, law.sample(n, generator), 2, generator)
    assert kept.shape == (n, 2, 2)
    seen = torch.bincount(law.index(kept), minlength=16)
    assert ((seen - n * law.probs).square() / (n * law.probs)).sum() < 15 + 5 * math.sqrt(30)
    found = sweeps(model, torch.ones(n, 2, 2, dtype=torch.float64), 40, generator)
    variance = law.second_moments().diag().view(2, 2) - law.mean().square()
    assert ((found.mean(0) - law.mean()).abs() < 5 * (variance / n).sqrt()).all()


def test_joint_chains_have_the_joint_marginals(generator):
    model = machine("bit", 3, generator)
    law = enumerate_distribution(model.joint, (7,))
    x = sweeps(model.joint, torch.zeros(30_000, 7, dtype=torch.float64), 40, generator)
    error = 5 * (law.mean() * (1 - law.mean()) / 30_000).sqrt()
    assert ((x.mean(0) - law.mean()).abs() < error).all()


def test_maximum_likelihood_without_hidden_units_matches_the_moments(generator):
    # The exponential family's own property: at the maximum, first and second moments are the data's.
    data = enumerate_distribution(machine("bit", 2, generator), (2, 2)).sample(500, generator)
    model = Boltzmann((2, 2), generator=generator).double()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=200, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = -log_likelihood(model, data)
        loss.backward()
        return loss

    optimizer.step(closure)
    flat = data.flatten(1)
    second = enumerate_distribution(model, (2, 2)).second_moments()
    torch.testing.assert_close(second, flat.T @ flat / 500, atol=1e-5, rtol=0)


def test_hidden_units_fit_what_pairs_cannot():
    # Even parity of three spins has no pair correlations: only hidden units see it.
    states = all_states(3, -1.0)
    data = states[states.prod(1) == 1].double()
    reached = []
    for hidden in (0, 2):
        model = Boltzmann((3,), hidden, "spin", std=0.5, generator=torch.Generator().manual_seed(1)).double()
        optimizer = torch.optim.Adam(model.parameters(), 0.1)
        for _ in range(250):
            optimizer.zero_grad()
            (-log_likelihood(model, data, "spin")).backward()
            optimizer.step()
        reached.append(log_likelihood(model, data, "spin").item())
    assert reached[0] == pytest.approx(-3 * math.log(2), abs=1e-3)
    assert reached[1] > -2.2 * math.log(2)


@HIDDEN
def test_protocols_copies_and_descriptions(hidden, generator):
    model = machine("spin", hidden, generator)
    assert isinstance(model, Conditionals)
    assert isinstance(model, BlockSampled)
    x = torch.ones(2, 2, 2, dtype=torch.float64)
    assert torch.equal(freeze(model)(x), model(x))
    again = build(describe(model), Boltzmann).double()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(x), model(x))


def test_too_many_hidden_units_are_sampled_through_the_joint(generator):
    model = Boltzmann((3,), 21, generator=generator)
    with pytest.raises(InputError, match=r"21 hidden units are too many to enumerate .* \.joint"):
        model(torch.ones(2, 3))
    assert sweeps(model.joint, torch.zeros(2, 24), 1, generator).shape == (2, 24)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Boltzmann((2,), -1), "hidden ≥ 0"),
        (lambda: Boltzmann((2,), std=-1), "std"),
        (lambda: Boltzmann((2,), units="pm1"), "'spin'"),
        (lambda: Boltzmann((2,), 1).block_gibbs(torch.ones(3, 2), None, 2.0), "temperature 1, not 2.0"),
        (lambda: Boltzmann((2,), 1)(torch.ones(2, 4)), "visible layer has 2 units"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()
