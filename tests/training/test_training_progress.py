"""What training logs if standard error is not a terminal."""

import logging

import pytest

from adance.training import Settings, Trainer
from adance.training.progress import TrainingProgress


@pytest.fixture(autouse=True)
def info(caplog):
    caplog.set_level(logging.INFO, "adance")


def test_a_run_says_what_it_does(parts, digits, tmp_path, caplog):
    energy, objective = parts("image")
    Trainer(energy, objective, digits, Settings(steps=3, batch_size=16, log_every=1), tmp_path / "run").fit()
    lines = caplog.messages
    assert lines[0].startswith("training MLP with ")
    assert lines[0].endswith(f" rows: steps 0 to 3 on cpu, into {tmp_path / 'run'}")
    assert lines[-2].startswith("step 3/3  ")
    assert lines[-1].startswith("drawing 64 samples: chains of ")


def test_nothing_is_logged_unless_shown(caplog):
    progress = TrainingProgress(0, 3, shown=False)
    progress.say("a word")
    progress.report(3, {"loss": 1.0})
    assert caplog.messages == []


def test_lines_come_between_logged_steps_and_ever_more_seldom(caplog, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    progress = TrainingProgress(0, 10_000)
    said = []
    for step in range(1, 1001):
        now[0] = float(step)
        progress.advance(step)
        said += [step] * len(caplog.messages)
        caplog.clear()
    assert said[:3] == [6, 12, 18]
    assert 40 <= len(said) <= 80
    assert said[-1] - said[-2] > 40
    now[0] = 2000.0
    progress.advance(1500)
    assert caplog.messages == ["step 1500/10000  1.33 s/step  11333 s left"]
