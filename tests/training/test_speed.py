"""How chains are computed is decided by what the device can do."""

import warnings

import pytest
import torch

from adance.energies import MLP, ClassConditionalMLP, given
from adance.errors import InputError
from adance.objectives import NCE, AdaNCE, Setting
from adance.samplers import Langevin
from adance.training import Settings, speed

DEVICE_CAN = [True, False]


def chosen(monkeypatch, can, **settings):
    """The type of the chains of a run long enough to be compiled."""
    monkeypatch.setattr(speed, "has_fast_bfloat16", lambda device: can)
    x, energy, recipe = torch.zeros(128, 1, 8, 8), MLP((1, 8, 8)), AdaNCE(interval=1)
    plan = recipe.chain_plan(Setting((1, 8, 8), 128))
    options = speed.chain_options(plan, energy, x, Settings(steps=100_000, **settings))
    objective = recipe.build(energy, x, batch_size=128, chains=options)
    assert objective.noise.chains.options == options
    return options.dtype


@pytest.mark.parametrize("can", DEVICE_CAN)
def test_auto_takes_bfloat16_where_it_is_fast_and_chains_are_compiled(can, monkeypatch):
    assert chosen(monkeypatch, can) == (torch.bfloat16 if can else None)
    assert chosen(monkeypatch, can, compile="off") is None


@pytest.mark.parametrize("can", DEVICE_CAN)
def test_asking_for_emulated_bfloat16_warns(can, monkeypatch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert chosen(monkeypatch, can, chain_dtype="bfloat16") == torch.bfloat16
    assert len(caught) == (0 if can else 1)
    assert all("emulates" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("settings", [{"compile": "on"}, {"chain_dtype": "float32"}])
def test_what_changes_nothing_is_told_of(settings, recwarn):
    x, energy, plan = torch.randn(64, 2), MLP((2,)), NCE().chain_plan(Setting((2,), 64))
    speed.chain_options(plan, energy, x, Settings())
    assert not recwarn
    with pytest.warns(UserWarning, match="the objective runs no chains: compile and chain_dtype have no effect"):
        speed.chain_options(plan, energy, x, Settings(**settings))


@pytest.mark.parametrize("start", ["reweighted", "persistent"])
def test_chains_are_not_compiled_if_their_numbers_differ_at_each_run(start):
    x, energy = torch.zeros(128, 2), MLP((2,))
    plan = AdaNCE(start=start).chain_plan(Setting((2,), 128))
    assert speed.chain_options(plan, energy, x, Settings(steps=1_000_000)).compile == (start == "persistent")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = speed.chain_options(plan, energy, x, Settings(compile="on"))
    assert options.compile == (start == "persistent")
    assert ["reweighted chains are not compiled" in str(each.message) for each in caught] == [True] * (
        not options.compile
    )


def test_there_is_no_other_choice():
    with pytest.raises(InputError, match="compile must be auto, on or off, got 'bogus'"):
        speed.decide_compile("bogus", Langevin(), MLP((2,)), torch.randn(4, 2), 10, 4)


def test_a_conditional_energy_is_reckoned_as_one_of_a_class():
    x, energy = torch.randn(4, 1, 8, 8), ClassConditionalMLP((1, 8, 8), classes=10)
    of_class = given(energy, torch.tensor([3]))
    one = speed.gradient_flops(of_class, x)
    assert one == pytest.approx(speed.gradient_flops(of_class, x[:1]))
    assert speed.gradient_flops(energy, x) == pytest.approx(10 * one)


@pytest.mark.parametrize(("bfloat16", "fast"), [(0.5, True), (0.9, False), (2.0, False)])
def test_bfloat16_is_fast_on_a_processor_if_its_products_are(bfloat16, fast, monkeypatch):
    seconds = {torch.float32: 1.0, torch.bfloat16: bfloat16}
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(speed, "_product_seconds", seconds.get)
    speed.has_fast_bfloat16.cache_clear()
    try:
        assert speed.has_fast_bfloat16(torch.device("cpu")) is fast
    finally:
        speed.has_fast_bfloat16.cache_clear()
