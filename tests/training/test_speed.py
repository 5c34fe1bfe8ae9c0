"""How chains are computed is decided by what the device can do."""

import warnings

import pytest
import torch

from adance.energies import MLP
from adance.objectives import AdaNCE
from adance.training import Settings, speed

DEVICE_CAN = [True, False]


def chosen(monkeypatch, can, **settings):
    """The type of the chains of a run long enough to be compiled."""
    monkeypatch.setattr(speed, "has_fast_bfloat16", lambda device: can)
    x, energy, objective = torch.zeros(128, 1, 8, 8), MLP((1, 8, 8)), AdaNCE(interval=1)
    objective.prepare(energy, x, 128)
    speed.set_chains(objective, energy, x, Settings(steps=100_000, **settings))
    return objective.noise.chain_dtype


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
