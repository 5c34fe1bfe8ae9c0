"""Compiled chains against eager ones. Compiling takes long: few energies, and most tests share a program."""

import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from adance.energies import MLP, freeze, refresh
from adance.energies.fast import fast_copy
from adance.energies.spectral import normalize_layers
from adance.objectives import Setting
from adance.objectives.objective import Site
from adance.objectives.snapshot_recipe import SnapshotRecipe
from adance.samplers import HMC, MALA, ChainOptions, Langevin, RandomWalkMetropolis, run_chains
from adance.samplers import compiled as programs
from adance.samplers.compiled import block_lengths, clone_tensors
from adance.samplers.kernel import StepInfo

pytestmark = pytest.mark.xdist_group("compiled chains")  # one process compiles the programs that tests share

IMAGE = (1, 7, 7)
KERNEL = Langevin(10, 1.0, 0.005, bounds=(-1, 1))
CLOSE = {"rtol": 0, "atol": 1e-5}


class Net(nn.Module):
    """One convolution of each kind: few inputs, many, and one that covers its input."""

    def __init__(self):
        super().__init__()
        self.convolutions = nn.ModuleList([nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 4, 3)])

    def forward(self, x):
        for convolution in self.convolutions:
            x = nn.functional.leaky_relu(convolution(x), 0.2)
        return x.flatten(1).square().sum(1)


def net():
    torch.manual_seed(1)
    return normalize_layers(Net()).eval()


def starts():
    return torch.rand(8, *IMAGE, generator=torch.Generator().manual_seed(2)) * 2 - 1


def both(kernel, energy, x, steps=None, **options):
    runs = []
    for compile in (True, False):
        generator = torch.Generator().manual_seed(3)
        runs.append(run_chains(kernel, energy, x, steps, generator=generator, compile=compile, **options))
        runs.append(generator.get_state())
    compiled, its_state, eager, state = runs
    assert torch.equal(its_state, state), "both draw the same numbers, so that training resumes alike"
    return compiled, eager


@pytest.fixture(autouse=True)
def _no_notice():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "chains of")
        yield


@given(st.integers(0, 200), st.integers(1, 12))
def test_blocks_make_up_the_steps_and_are_all_alike_but_the_last(steps, most):
    lengths = block_lengths(steps, most)
    assert sum(lengths) == steps
    assert all(0 < length <= most for length in lengths)
    assert len(set(lengths[:-1])) <= 1


def test_blocks_of_usual_chains():
    assert block_lengths(100, 10) == [10] * 10
    assert block_lengths(32, 10) == [8] * 4
    assert block_lengths(22, 10) == [10, 10, 2]
    assert block_lengths(3, 2) == [1, 1, 1]


def test_a_compiled_chain_is_the_eager_one():
    compiled, eager = both(KERNEL, fast_copy(freeze(net())), starts())
    torch.testing.assert_close(compiled.x, eager.x, **CLOSE)
    for name in ("energy", "gradient_norm", "acceptance", "finite"):
        torch.testing.assert_close(getattr(compiled, name), getattr(eager, name), **CLOSE)
    assert compiled.gradients == eager.gradients
    assert (eager.x - starts()).abs().mean() > 0.01
    assert compiled.state.x is compiled.x


def test_a_snapshot_after_a_refresh_is_what_compiled_chains_follow():
    energy, data = net(), starts()
    recipe = SnapshotRecipe(KERNEL, "data", 0.0, interval=5, pool=8, buffer=1)

    def built(**options):
        return recipe.build(Site(energy, data, Setting(IMAGE, 8), None, None, ChainOptions(**options)))

    noise = built(compile=True)
    first = noise.sample(8, data, torch.Generator().manual_seed(3)).x
    programs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    with torch.no_grad():
        for parameter in energy.parameters():
            parameter.mul_(1.5)
    noise.after_step(energy, 5, None)
    second = noise.sample(8, data, torch.Generator().manual_seed(3)).x
    right = built().sample(8, data, torch.Generator().manual_seed(3)).x
    torch.testing.assert_close(second.sort(0)[0], right.sort(0)[0], **CLOSE)
    assert (first.sort(0)[0] - second.sort(0)[0]).abs().max() > 1e-3
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == programs, "nothing is compiled again"
    # the ratio's reference is the plain copy, whose energies are the model's to the bit
    with torch.no_grad():
        assert torch.equal(noise.energy(data), energy(data))


def test_a_compiled_adapting_chain_is_the_eager_one():
    energy = freeze(MLP((2,), [16]))
    x = torch.randn(64, 2, generator=torch.Generator().manual_seed(4))
    compiled, eager = both(MALA(), energy, x, 4, adapt=4)
    torch.testing.assert_close(compiled.x, eager.x, **CLOSE)
    torch.testing.assert_close(compiled.step_size, eager.step_size, **CLOSE)
    torch.testing.assert_close(compiled.acceptance, eager.acceptance, **CLOSE)
    assert 0.1 < eager.acceptance.mean() < 1
    other = freeze(MLP((2,), [16]))
    refresh(energy, other)
    torch.testing.assert_close(*(run.x for run in both(MALA(), energy, x, 4, adapt=4)), **CLOSE)


@pytest.mark.parametrize("kernel", [HMC(4, 1.2, 2), RandomWalkMetropolis(4, 0.5)], ids=["HMC", "random walk"])
def test_compiled_chains_record_and_call_back_as_eager_ones_do(kernel):
    seen, x = [], torch.randn(64, 2, generator=torch.Generator().manual_seed(4))
    options = {"adapt": 2, "record": True, "callback": lambda i, x: seen.append((i, x.clone()))}
    compiled, eager = both(kernel, freeze(MLP((2,), [16])), x, **options)
    torch.testing.assert_close(compiled.positions, eager.positions, **CLOSE)
    assert [i for i, _ in seen] == [1, 2, 3, 4] * 2
    for i, at in seen:
        torch.testing.assert_close(at, eager.positions[i - 1], **CLOSE)
    assert 0.1 < eager.acceptance.mean() < 1


def test_what_cannot_be_compiled_says_so_once_and_goes_on(generator):
    class Odd(nn.Module):
        def forward(self, x):
            values = x.square().flatten(1).sum(1)
            return values * float(values.sum() > -1)  # a graph cannot hold this

    x, energy = torch.randn(4, 2), Odd()
    with pytest.warns(UserWarning, match=r"Langevin on Odd are not compiled") as notices:
        first, eager = both(Langevin(4, 0.1), energy, x)
    assert len(notices) == 1
    assert torch.equal(first.x, eager.x)
    both(Langevin(4, 0.1), energy, x)  # a second notice would be an error here
    with pytest.warns(UserWarning, match=r"HMC on Odd are not compiled"):
        both(HMC(2, 0.1), energy, x)


class Quadratic(nn.Module):
    def forward(self, x):
        return x.square().sum(1)


def test_one_program_too_many_is_run_without(monkeypatch):
    monkeypatch.setattr(programs, "PROGRAMS", 1)
    torch.compiler.reset()
    x, step_sizes = torch.randn(4, 2), (0.1, 0.2)
    first, second = (Quadratic() for _ in step_sizes)
    both(Langevin(4, 0.1), first, x)
    with pytest.warns(UserWarning, match=r"Langevin on Quadratic are not compiled") as notices:
        compiled, eager = both(Langevin(4, 0.2), second, x)
    assert len([notice for notice in notices if "not compiled" in str(notice.message)]) == 1
    assert torch.equal(compiled.x, eager.x)


def test_a_cache_that_cannot_be_written_is_run_without(monkeypatch):
    def refuse(*args):
        raise NotADirectoryError("no such cache")

    monkeypatch.setattr(programs, "_compiled", lambda on_cuda: refuse)
    x = torch.randn(4, 2)
    with pytest.warns(UserWarning, match=r"Langevin on Quadratic are not compiled: no such cache$"):
        compiled, eager = both(Langevin(4, 0.1), Quadratic(), x)
    assert torch.equal(compiled.x, eager.x)


def test_what_a_graph_returns_is_copied_before_its_next_replay():
    x = torch.randn(3, 2)
    seen = StepInfo(x[:, 0], x[:, 1], None)
    copied, (first, *_, missing) = clone_tensors((x, seen))
    x.zero_()
    assert copied.abs().min() > 0
    assert first.abs().min() > 0
    assert missing is None


def test_of_energies_of_one_class_one_that_cannot_be_compiled_leaves_the_others(monkeypatch):
    class Odd(nn.Module):
        def forward(self, x):
            return x * float(x.sum() > -1e9)

    x = torch.randn(4, 2)
    squared = nn.Flatten(), Quadratic()
    with pytest.warns(UserWarning, match=r"Langevin on Sequential are not compiled"):
        run_chains(Langevin(4, 0.1), nn.Sequential(Odd(), Quadratic()), x, compile=True)
    calls = []
    real = programs._compiled
    monkeypatch.setattr(programs, "_compiled", lambda on_cuda: calls.append(1) or real(on_cuda))
    both(Langevin(4, 0.1), nn.Sequential(*squared), x)
    assert calls
