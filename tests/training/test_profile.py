import time

import torch

from adance.energies import MLP
from adance.samplers import MALA, Langevin, UnderdampedLangevin
from adance.training.profile import Profile
from adance.training.speed import decide_compile, gradient_flops


def test_a_part_inside_another_is_not_counted_twice():
    profile = Profile(torch.device("cpu"))
    with profile.part("outer"):
        time.sleep(0.02)
        with profile.part("inner"):
            time.sleep(0.05)
    assert 0.02 <= profile.seconds["outer"] < 0.05 <= profile.seconds["inner"]


def test_where_the_time_of_a_run_went(parts, digits, tmp_path):
    from adance.training import Settings, Trainer

    energy, objective = parts("image")
    settings = Settings(steps=60, batch_size=16)
    trainer = Trainer(energy, objective, digits, settings, tmp_path / "run", show_progress=False, profile=True)
    trainer.fit()
    for word in ("data ", "chain ", "forward/backward ", "logging ", "the rest ", "later chains: ", "GFLOP/s"):
        assert word in trainer.profile_table


def test_arithmetic_of_a_gradient():
    energy = MLP((1, 8, 8), [16])
    assert gradient_flops(energy, torch.zeros(1, 1, 8, 8)) == 2 * 2 * (64 * 16 + 16)


def test_compiling_by_choice_or_where_it_pays():
    energy, x = MLP((2,), [16]), torch.zeros(1, 2)
    assert not decide_compile("auto", Langevin(), energy, x, steps=1000, rows=100)
    assert decide_compile("auto", Langevin(), energy, x, steps=1e6, rows=100)
    assert decide_compile("auto", MALA(), energy, x, steps=1000, rows=10**9)
    assert not decide_compile("auto", UnderdampedLangevin(), energy, x, steps=1e9, rows=100)
    for on, off in (("on", "off"), (True, False)):
        assert decide_compile(on, Langevin(), energy, x, steps=1, rows=1)
        assert not decide_compile(off, Langevin(), energy, x, steps=1e9, rows=1)
