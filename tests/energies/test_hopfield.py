import pytest
import torch

from adance import InputError
from adance.configurable import build, describe
from adance.energies import Hopfield


def patterns(generator, n=8, shape=(10, 10)):
    return 2.0 * torch.randint(0, 2, (n, *shape), generator=generator) - 1


def test_hebbian_weights_are_the_mean_outer_product(generator):
    stored = patterns(generator, 3, (5,))
    net = Hopfield((5,)).store(stored)
    expected = sum(torch.outer(x, x) for x in stored) / 5
    torch.testing.assert_close(net.couplings, expected.fill_diagonal_(0))
    one_by_one = Hopfield((5,))
    for x in stored:
        one_by_one.store(x[None])
    torch.testing.assert_close(one_by_one.couplings, net.couplings)


def test_stored_patterns_are_fixed_points(generator):
    stored = patterns(generator)
    net = Hopfield((10, 10)).store(stored)
    assert torch.equal(net.recall(stored), stored)
    # and stable: every unit has the sign of its field
    assert torch.equal(net.conditional_logits(stored).sign(), stored)


@pytest.mark.parametrize("in_order", [True, False])
def test_corrupted_patterns_are_recalled(in_order, generator):
    stored = patterns(generator, 6, (12, 12))
    net = Hopfield((12, 12)).store(stored)
    flips = torch.rand(stored.shape, generator=generator) < 0.15
    start = torch.where(flips, -stored, stored)
    kept = start.clone()
    assert torch.equal(net.recall(start, generator=None if in_order else generator), stored)
    assert torch.equal(start, kept)


@pytest.mark.parametrize("rule", ["hebbian", "projection"])
def test_energy_never_rises(rule, generator):
    # Overloaded, so that recall wanders; with a bias, and from starts that have unknown units.
    net = Hopfield((30,)).store(patterns(generator, 20, (30,)), rule).double()
    with torch.no_grad():
        net.bias.copy_(0.1 * torch.randn(30, generator=generator))
    x = torch.randint(-1, 2, (50, 30), generator=generator).double()
    energies = [net(x)]
    end = net.recall(x, generator=generator, callback=lambda sweep, x: energies.append(net(x)))
    fall = torch.stack(energies).diff(dim=0)
    assert len(energies) > 3
    assert (fall <= 1e-12).all()
    assert (fall[-1] == 0).all()
    assert ((end == 1) | (end == -1)).all()
    # single updates too: flipping any unit of the end costs energy
    for i in range(30):
        flipped = end.clone()
        flipped[:, i] *= -1
        assert (net(flipped) >= net(end) - 1e-12).all()


def test_known_units_are_held_and_missing_ones_filled_in(generator):
    stored = patterns(generator, 5)
    net = Hopfield((10, 10)).store(stored)
    known = torch.ones(10, 10, dtype=torch.bool)
    known[5:] = False
    broken = torch.where(known, stored, torch.full((), torch.nan))
    assert torch.equal(net.complete(broken, known), stored)
    wrong = patterns(generator, 5)
    assert torch.equal(net.recall(wrong, known)[:, :5], wrong[:, :5])


def test_projection_holds_related_patterns_that_hebb_s_rule_mixes(generator):
    base = patterns(generator, 1)
    flips = torch.rand(20, 10, 10, generator=generator) < 0.15
    stored = torch.where(flips, -base, base)
    assert not torch.equal(Hopfield((10, 10)).store(stored).recall(stored), stored)
    assert torch.equal(Hopfield((10, 10)).store(stored, "projection").recall(stored), stored)


def test_a_field_of_zero_leaves_a_unit_as_it_is():
    net = Hopfield((3,))
    x = torch.tensor([[1.0, -1.0, 0.0]])
    assert net.recall(x).tolist() == [[1.0, -1.0, 1.0]]


def test_description_and_state_make_it_again(generator):
    net = Hopfield((4, 4)).store(patterns(generator, 2, (4, 4)))
    again = build(describe(net), Hopfield)
    again.load_state_dict(net.state_dict())
    x = patterns(generator, 3, (4, 4))
    assert torch.equal(again(x), net(x))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hopfield((3,)).store(torch.zeros(1, 3)), "−1 and 1"),
        (lambda: Hopfield((3,)).store(torch.ones(0, 3)), "at least one"),
        (lambda: Hopfield((3,)).store(torch.ones(1, 3), "storkey"), "hebbian or projection"),
        (lambda: Hopfield((3,)).store(torch.ones(1, 4)), "Hopfield has 3 units"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()
