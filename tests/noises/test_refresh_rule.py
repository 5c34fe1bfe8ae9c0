"""The factor of the learning rate that makes snapshots of reweighted chains last long enough."""

import pytest
import torch
from torch import nn

from adance.noises.noise import Separation
from adance.noises.refresh import LOWEST, SHORTEST, RefreshRule
from adance.objectives import NCE
from adance.training import Settings
from adance.training.optimizers import Optimizers


def separation(share):
    return Separation(lambda: torch.ones(()), lambda: torch.tensor(share))


def refresh_after(rule, age):
    """Take ``age`` steps, after which the weights are stale, and check that only the last one is a refresh."""
    for step in range(1, age + 1):
        assert rule.due(step, separation(0.1 if step == age else 0.9)) == (step == age)


def test_the_rate_falls_until_snapshots_last_and_rises_again():
    """Intervals are inversely proportional to the learning rate, as for a model that changes at a constant speed."""
    rule, ages = RefreshRule("auto", reweights=True), []
    for _ in range(20):
        ages.append(max(1, round(1 / rule.lr_factor)))
        refresh_after(rule, ages[-1])
    assert ages[0] == 1
    assert abs(ages[-1] - SHORTEST) <= 1
    for _ in range(10):
        refresh_after(rule, 30)
    assert rule.lr_factor == 1


def test_one_short_interval_among_long_ones_leaves_the_rate():
    rule = RefreshRule("auto", reweights=True)
    for age in (17, 2, 23, 27, 2):
        refresh_after(rule, age)
        assert rule.lr_factor == 1


def test_the_refresh_after_a_finished_run_leaves_the_rate():
    rule = RefreshRule("auto", reweights=True, last=2)
    assert not rule.due(1, separation(0.9))
    assert rule.due(2, separation(0.9))
    rule.last = 100  # the run gets more steps
    refresh_after(rule, 1)
    assert rule.lr_factor == 1


def test_the_rate_can_always_recover():
    rule = RefreshRule("auto", reweights=True)
    for _ in range(2000):
        refresh_after(rule, 1)
    assert rule.lr_factor == LOWEST
    for _ in range(60):
        refresh_after(rule, 30)
    assert rule.lr_factor == 1


@pytest.mark.parametrize("options", [{"interval": "auto"}, {"interval": 1, "reweights": True}])
def test_other_rules_leave_the_rate(options):
    rule = RefreshRule(**options)
    for step in range(1, 5):
        rule.due(step, Separation(lambda: torch.ones(()), lambda: torch.tensor(0.1)))
    assert rule.lr_factor == 1


def test_a_restored_rule_continues_with_the_same_rate():
    rule, again = RefreshRule("auto", reweights=True), RefreshRule("auto", reweights=True)
    for _ in range(3):
        refresh_after(rule, 2)
    again.restore(rule.state())
    for made in (rule, again):
        refresh_after(made, 3)
    assert again.lr_factor == rule.lr_factor < 1


def test_the_first_step_is_as_long_as_the_rate_and_its_factor():
    """The first step of Adam changes every weight by the learning rate."""
    energy = nn.Linear(3, 1)
    before = energy.weight.detach().clone()
    optimizers = Optimizers(energy, NCE().build(energy, torch.randn(8, 3)), Settings(lr=0.01))
    energy(torch.ones(2, 3)).sum().backward()
    optimizers.step(1, torch.zeros(()), 0.25)
    torch.testing.assert_close(before - energy.weight, torch.full((1, 3), 0.0025), rtol=1e-3, atol=0)
