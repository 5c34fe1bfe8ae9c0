import math

import pytest
import torch

from adance import InputError
from adance.configurable import build, describe
from adance.energies import BlockSampled, Conditionals, Ising, enumerate_distribution, flip_logits, freeze, lattice
from adance.energies.pairwise import Pairwise, color


def sweeps(model, x, n, generator, temperature=1.0):
    for _ in range(n):
        x = model.block_gibbs(x, generator, temperature)
    return x


def random_ising(units, generator, n=5):
    weight = torch.randn(n, n, generator=generator, dtype=torch.float64)
    return Ising.of(weight, torch.randn(n, generator=generator, dtype=torch.float64), units)


@pytest.mark.parametrize("units", ["spin", "bit"])
def test_conditional_of_asymmetric_couplings(units, generator):
    model = random_ising(units, generator)
    law = enumerate_distribution(model, (5,), units)
    x, W, b = law.states, model.weight, model.bias
    assert not torch.equal(W, W.T)
    # p(xᵢ = 1 | rest) by enumeration: the state with xᵢ = 1 against that with the lower value
    right = torch.zeros_like(x)
    for i in range(5):
        up, down = x.clone(), x.clone()
        up[:, i], down[:, i] = 1, model.low
        right[:, i] = law.log_prob(up) - law.log_prob(down)
    torch.testing.assert_close(model.conditional_logits(x), right)
    textbook = x @ (W + W.T) + 2 * b if units == "spin" else 0.5 * x @ (W + W.T) + b
    torch.testing.assert_close(textbook, right)
    some = torch.tensor([3, 0, 3])
    for logits in (model.conditional_logits(x, some), flip_logits(model, x, some, model.low)):
        torch.testing.assert_close(logits, right[:, some])
    torch.testing.assert_close(flip_logits(model, x, low=model.low), right)


def test_conditionals_keep_the_event_s_shape(generator):
    model = Ising((2, 3), "grid", 0.3, 0.1)
    x = enumerate_distribution(model, (2, 3), "spin").states
    assert model.conditional_logits(x).shape == flip_logits(model, x, low=-1.0).shape == (64, 2, 3)
    torch.testing.assert_close(model.conditional_logits(x), flip_logits(model, x, low=-1.0))


def test_energy_is_the_double_sum(generator):
    model = random_ising("spin", generator, 4)
    x = torch.tensor([1.0, -1, -1, 1], dtype=torch.float64)
    double_sum = sum(model.weight[i, j] * x[i] * x[j] for i in range(4) for j in range(4) if i != j)
    torch.testing.assert_close(model(x[None])[0], -(0.5 * double_sum + model.bias @ x))


@pytest.mark.parametrize("units", ["spin", "bit"])
@pytest.mark.parametrize(("graph", "temperature"), [("full", 1.0), ("grid", 1.0), ("grid", 2.5)])
def test_block_gibbs_keeps_the_enumerated_law(units, graph, temperature, generator):
    model = Ising((2, 3), graph, 0.7, 0.1, units).double()
    with torch.no_grad():
        model.weight.mul_(torch.randn(6, 6, generator=generator, dtype=torch.float64))
    law = enumerate_distribution(model, (2, 3), units, temperature)
    n = 40_000
    starts = law.sample(n, generator)
    ends = sweeps(model, starts, 3, generator, temperature)
    assert ends.shape == (n, 2, 3)
    assert not torch.equal(starts, ends)
    # Pearson's χ² of 64 states has mean 63 and standard deviation √126.
    seen = torch.bincount(law.index(ends), minlength=64)
    assert ((seen - n * law.probs).square() / (n * law.probs)).sum() < 63 + 5 * math.sqrt(126)


def test_block_updates_reach_the_law_from_anywhere(generator):
    model = random_ising("spin", generator, 4)
    with torch.no_grad():
        model.weight.mul_(0.3)
    law = enumerate_distribution(model, (4,), "spin")
    x = sweeps(model, torch.full((20_000, 4), 0.37, dtype=torch.float64), 50, generator)
    error = 5 * ((1 - law.mean().square()) / 20_000).sqrt()
    assert ((x.mean(0) - law.mean()).abs() < error).all()


def test_updates_alter_neither_the_start_nor_the_model(generator):
    model = Ising((3, 3), "grid", 0.5)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    start = torch.ones(4, 3, 3)
    rng = torch.get_rng_state()
    ends = sweeps(model, start, 2, generator)
    assert (start == 1).all()
    assert not ends.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), rng)


def test_lattices_have_each_bond_once():
    free, torus = lattice((3, 4), periodic=False), lattice((3, 4))
    assert torch.equal(free, free.T)
    assert free.sum() / 2 == 3 * 3 + 2 * 4
    assert torus.sum() / 2 == 2 * 12
    assert (torus.sum(1) == 4).all()
    assert free[0].nonzero().flatten().tolist() == [1, 4]
    assert torch.equal(lattice((1, 3, 4)), torus)
    # two bonds join the sites of a periodic axis of length 2
    assert lattice((2,)).tolist() == [[0, 2], [2, 0]]


def test_ising_chain_has_its_closed_form():
    # A ring of n spins: Z = λ₊ⁿ + λ₋ⁿ with λ± = eᴶ cosh B ± √(e²ᴶ sinh²B + e⁻²ᴶ).
    n, J, B = 7, 0.6, 0.3
    root = math.sqrt(math.exp(2 * J) * math.sinh(B) ** 2 + math.exp(-2 * J))
    z = sum((math.exp(J) * math.cosh(B) + sign * root) ** n for sign in (1, -1))
    law = enumerate_distribution(Ising((n,), "torus", J, B).double(), (n,), "spin")
    assert law.log_z.item() == pytest.approx(math.log(z), abs=1e-6)


def test_boards_have_two_colors_and_odd_rings_three():
    assert len(Ising((4, 6), "torus").blocks()) == 2
    assert len(Ising((5, 3), "grid").blocks()) == 2
    assert len(Ising((5,), "torus").blocks()) == 3
    assert len(Ising((5,)).blocks()) == 5
    for graph in (lattice((3, 5)), torch.tensor([[0.0, 1, 0], [0, 0, 0], [0, 0, 0]])):
        sets = color(graph)
        assert sorted(torch.cat(sets).tolist()) == list(range(len(graph)))
        assert all((graph[nodes][:, nodes] == 0).all() for nodes in sets)


def test_training_keeps_couplings_on_the_graph():
    model = Ising((2, 3), "grid")
    model(torch.ones(2, 2, 3)).sum().backward()
    torch.optim.SGD(model.parameters(), 1.0).step()
    assert torch.equal(model.couplings != 0, model.graph != 0)


def test_protocols_copies_and_descriptions():
    model = Ising((2, 3), "torus", 0.4, 0.1, "bit")
    assert isinstance(model, Conditionals)
    assert isinstance(model, BlockSampled)
    x = torch.ones(2, 2, 3)
    assert torch.equal(freeze(model)(x), model(x))
    assert torch.equal(build(describe(model), Ising)(x), model(x))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ising((3,), "ring"), "full, grid or torus"),
        (lambda: Ising((3,), units="pm"), "'spin'"),
        (lambda: Ising((0, 3)), "no units"),
        (lambda: Ising.of(torch.zeros(2, 3)), "couplings"),
        (lambda: Ising.of(torch.zeros(2, 2), torch.zeros(3)), "couplings"),
        (lambda: Pairwise((2,), graph=torch.ones(3, 3)), r"graph must have shape \(2, 2\)"),
        (lambda: Ising((3,))(torch.ones(2, 4)), "Ising has 3 units, but events of shape .4,. have 4"),
        (lambda: enumerate_distribution(lambda x: x.sum(1), (21,)), "at most 20"),
        (lambda: enumerate_distribution(lambda x: x.sum(1), (2,), temperature=0), "temperature"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message) as error:
        make()
    assert "\n" not in str(error.value)
