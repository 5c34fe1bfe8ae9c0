import math

import pytest
import torch

from adance import ContrastiveDivergence, InputError, PersistentCD
from adance.configurable import build, describe
from adance.energies import (
    RBM,
    BlockSampled,
    Conditionals,
    enumerate_distribution,
    fit_visible_bias,
    flip_logits,
    freeze,
    log_likelihood,
)
from adance.energies.binary import all_states
from adance.samplers import BlockGibbs

UNITS = pytest.mark.parametrize("units", ["bit", "spin"])


def sweeps(model, x, n, generator):
    for _ in range(n):
        x = model.block_gibbs(x, generator)
    return x


def rbm(units, generator, visible=(4,), hidden=3):
    model = RBM(visible, hidden, units, std=0.8, generator=generator).double()
    with torch.no_grad():
        model.visible_bias.copy_(torch.randn(model.visible_bias.shape, generator=generator))
        model.hidden_bias.copy_(torch.randn(hidden, generator=generator))
    return model


def joint(model):
    """Every (v, h), and log of the enumerated joint law, from the energy as the thesis writes it."""
    visible, hidden = model.weight.shape
    both = all_states(visible + hidden, model.low, model.weight)
    v, h = both[:, :visible], both[:, visible:]
    W, a, b = model.weight, model.visible_bias, model.hidden_bias
    energy = torch.stack([-(vi @ W @ hi + a @ vi + b @ hi) for vi, hi in zip(v, h, strict=True)])
    return v, h, energy


@UNITS
def test_energy_free_energy_and_log_z_are_the_enumerated_ones(units, generator):
    model = rbm(units, generator)
    v, h, energy = joint(model)
    torch.testing.assert_close(model.joint_energy(v, h), energy, atol=1e-12, rtol=0)
    table = energy.view(16, 8)
    torch.testing.assert_close(model(v[::8]), -(-table).logsumexp(1), atol=1e-12, rtol=0)
    torch.testing.assert_close(model.hidden_free_energy(h[:8]), -(-table).logsumexp(0), atol=1e-12, rtol=0)
    torch.testing.assert_close(model.log_partition(), (-energy).logsumexp(0), atol=1e-12, rtol=0)
    torch.testing.assert_close(model.log_partition(chunk=3), (-energy).logsumexp(0), atol=1e-12, rtol=0)
    torch.testing.assert_close(model.log_prob(v[::8]).exp().sum(), torch.ones((), dtype=torch.float64))


@UNITS
def test_log_z_is_the_same_by_either_layer(units, generator):
    wide = rbm(units, generator, (2, 3), 8)
    narrow = rbm(units, generator, (8,), 6)
    with torch.no_grad():
        narrow.weight.copy_(wide.weight.T)
        narrow.visible_bias.copy_(wide.hidden_bias)
        narrow.hidden_bias.copy_(wide.visible_bias)
    torch.testing.assert_close(wide.log_partition(), narrow.log_partition())


@UNITS
def test_conditionals_are_the_enumerated_ones(units, generator):
    model = rbm(units, generator)
    v, h, energy = joint(model)
    p = (-energy).softmax(0).view(16, 8)
    vs, hs = v[::8], h[:8]
    given_v, given_h = p / p.sum(1, keepdim=True), p / p.sum(0)
    torch.testing.assert_close(model.hidden_logits(vs).sigmoid(), given_v @ (hs == 1).double(), atol=1e-12, rtol=0)
    torch.testing.assert_close(model.visible_logits(hs).sigmoid(), given_h.T @ (vs == 1).double(), atol=1e-12, rtol=0)
    right = flip_logits(model, vs, low=model.low)
    torch.testing.assert_close(model.conditional_logits(vs), right)
    some = torch.tensor([2, 0])
    torch.testing.assert_close(model.conditional_logits(vs, some), right[:, some])
    torch.testing.assert_close(flip_logits(model, vs, some, model.low), right[:, some])


@UNITS
def test_likelihood_gradient_is_the_enumerated_one(units, generator):
    model = rbm(units, generator)
    v, h, energy = joint(model)
    p = (-energy).softmax(0)
    data = v[::8][torch.tensor([1, 5, 5, 12, 15])]
    # positive phase less negative phase, both by enumeration: data by p(h|v), the model by p(v, h)
    given_v = (-energy.view(16, 8)).softmax(1)
    rows = torch.tensor([1, 5, 5, 12, 15])
    expected = {
        "weight": sum(data[n][:, None] * (given_v[r] @ h[:8]) for n, r in enumerate(rows)) / 5 - (v * p[:, None]).T @ h,
        "visible_bias": data.mean(0) - p @ v,
        "hidden_bias": (given_v[rows] @ h[:8]).mean(0) - p @ h,
    }
    for likelihood in (lambda: model.log_prob(data).mean(), lambda: log_likelihood(model, data, units)):
        model.zero_grad()
        likelihood().backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(parameter.grad, expected[name], atol=1e-10, rtol=0)


@UNITS
def test_block_gibbs_keeps_the_enumerated_law_and_finds_its_marginals(units, generator):
    model = rbm(units, generator, (2, 2))
    law = enumerate_distribution(model, (2, 2), units)
    n = 40_000
    kept = sweeps(model, law.sample(n, generator), 2, generator)
    assert kept.shape == (n, 2, 2)
    # Pearson's χ² of 16 states has mean 15 and standard deviation √30.
    seen = torch.bincount(law.index(kept), minlength=16)
    assert ((seen - n * law.probs).square() / (n * law.probs)).sum() < 15 + 5 * math.sqrt(30)
    found = sweeps(model, torch.zeros(n, 2, 2, dtype=torch.float64), 50, generator)
    variance = law.second_moments().diag().view(2, 2) - law.mean().square()
    assert ((found.mean(0) - law.mean()).abs() < 5 * (variance / n).sqrt()).all()


def test_block_gibbs_has_detailed_balance(generator):
    # v → h → v' as a matrix of 16 × 16 probabilities
    model = rbm("bit", generator)
    energy = joint(model)[2]
    p = (-energy).softmax(0).view(16, 8)
    to_h, to_v = p / p.sum(1, keepdim=True), (p / p.sum(0)).T
    flow = p.sum(1)[:, None] * (to_h @ to_v)
    torch.testing.assert_close(flow, flow.T, atol=1e-14, rtol=0)


@UNITS
def test_log_partition_of_sixteen_hidden_units_is_finite_at_any_scale(units, generator):
    model = RBM((8, 8), 16, units, std=30.0, generator=generator)
    assert model.log_partition().isfinite()
    assert model(torch.ones(2, 8, 8)).isfinite().all()


@UNITS
@pytest.mark.parametrize(("kind", "k", "steps"), [(PersistentCD, 1, 40), (ContrastiveDivergence, 40, 1)])
def test_contrastive_divergence_has_the_likelihood_s_gradient(units, kind, k, steps, generator):
    # Four visible and three hidden units. Chains that have mixed are samples of the model, and the gradient of the gap
    # is that of the exact likelihood within five standard errors of a product of units, over data and over chains.
    n = 20_000
    data = enumerate_distribution(rbm(units, generator), (4,), units).sample(n, generator)
    model, recipe = rbm(units, generator), kind(k, BlockGibbs())
    (-model.log_prob(data).mean()).backward()
    exact = [parameter.grad.clone() for parameter in model.parameters()]
    objective = recipe.build(model, data, generator=generator)
    for step in range(1, steps + 1):
        out = objective.loss(model, data, generator)
        objective.after_step(model, step, out)
    model.zero_grad()
    out.value.backward()
    for parameter, right in zip(model.parameters(), exact, strict=True):
        error = 5 * (1 - model.low) / 2 / math.sqrt(n)
        torch.testing.assert_close(parameter.grad, right, atol=error, rtol=0)


@UNITS
@pytest.mark.parametrize("kind", [PersistentCD, ContrastiveDivergence])
def test_training_raises_the_exact_likelihood(units, kind, generator):
    target = rbm("spin", generator, (2, 3), 3)
    spins = enumerate_distribution(target, (2, 3), "spin").sample(1000, generator)
    data = spins if units == "spin" else (spins + 1) / 2
    model = RBM((2, 3), 4, units, generator=generator).double()
    fit_visible_bias(model, data)
    independent = model.log_prob(data).mean()
    objective = kind(1, BlockGibbs()).build(model, data, batch_size=100, generator=generator)
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, 200 / (step + 1)))
    for step in range(1, 801):
        optimizer.zero_grad()
        out = objective.loss(model, data[torch.randint(1000, (100,), generator=generator)], generator)
        out.value.backward()
        optimizer.step()
        rate.step()
        objective.after_step(model, step, out)
    best = target.log_prob(spins).mean()
    reached = (model.log_prob(data).mean() - independent) / (best - independent)
    assert reached > 0.8


def test_visible_bias_fits_the_means():
    data = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    model = RBM((2,), 2, std=0)
    fit_visible_bias(model, data)
    assert model.visible_bias.sigmoid().tolist() == pytest.approx([2.5 / 4, 1.5 / 4])
    spins = RBM((2,), 2, "spin", std=0)
    fit_visible_bias(spins, 2 * data - 1)
    assert (2 * spins.visible_bias).sigmoid().tolist() == pytest.approx([2.5 / 4, 1.5 / 4])


def test_protocols_copies_and_descriptions(generator):
    model = RBM((2, 2), 3, "spin", generator=generator)
    assert isinstance(model, Conditionals)
    assert isinstance(model, BlockSampled)
    x = torch.ones(2, 2, 2)
    assert torch.equal(freeze(model)(x), model(x))
    again = build(describe(model), RBM)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(x), model(x))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBM((2,), 0), "hidden"),
        (lambda: RBM((2,), 2, std=-1), "std"),
        (lambda: RBM((2,), 2, "binary"), "'spin'"),
        (lambda: RBM((2,), 2)(torch.ones(3, 5)), "has 2 units, but events of shape .5,. have 5"),
        (lambda: RBM((2,), 2).block_gibbs(torch.ones(3, 2), None, 2.0), "temperature 1, not 2.0"),
        (lambda: RBM((30,), 30).log_partition(), "at most 24"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message) as error:
        make()
    assert "\n" not in str(error.value)
