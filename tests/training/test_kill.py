"""Runs that are killed at any moment, and runs that are interrupted, go on as if nothing had happened."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from child_processes import TINY, end_of, finish, start

from adance.cli import main
from adance.training import Trainer, load


def leftovers(folder):
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


def test_killed_at_random_moments(tmp_path, uninterrupted):
    out, steps, moments = tmp_path / "run", 120, random.Random(7)
    process = start([*TINY, "--steps", steps, "--out", out])
    for kill in range(4):
        reached = 10 + 25 * kill
        while not any(int(path.name) >= reached for path in (out / "checkpoints").glob("[0-9]*")):
            assert process.is_alive()
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.05))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        process = start(["train", "--resume", out, "--quiet"])
    process.join(120)
    assert process.exitcode == 0
    assert end_of(out) == uninterrupted(steps)
    assert leftovers(out) == []


# data.json, config.yaml, the first checkpoint (steps 0), a later one, and the very last files of a run
@pytest.mark.parametrize("moment", [1, 3, 4, 8, 12, 13, 20, 28])
def test_killed_while_writing(moment, tmp_path, uninterrupted):
    out = tmp_path / "run"
    assert finish([*TINY, "--steps", 10, "--out", out], moment) == -signal.SIGKILL
    if moment <= 3:
        assert not (out / "config.yaml").exists()
        again = [*TINY, "--steps", 10, "--out", out]
    else:
        again = ["train", "--resume", out, "--quiet"]
    assert finish(again) == 0
    assert end_of(out) == uninterrupted(10)
    if moment > 3:
        assert leftovers(out) == []


def test_killed_again_and_again_while_resuming(tmp_path, uninterrupted):
    out = tmp_path / "run"
    assert finish([*TINY, "--steps", 10, "--out", out], 6) == -signal.SIGKILL
    for moment in (1, 5, 12):
        assert finish(["train", "--resume", out, "--quiet"], moment) == -signal.SIGKILL
    assert finish(["train", "--resume", out, "--quiet"]) == 0
    assert end_of(out) == uninterrupted(10)


def test_a_run_killed_before_its_first_checkpoint_resumes(tmp_path, uninterrupted):
    out = tmp_path / "run"
    assert finish([*TINY, "--steps", 10, "--out", out], 6) == -signal.SIGKILL
    assert list((out / "checkpoints").glob("[0-9]*")) == []
    assert leftovers(out) == [out / "checkpoints" / ".00000000.part"]
    assert main(["train", "--resume", str(out), "--quiet"]) == 0
    assert end_of(out) == uninterrupted(10)
    assert leftovers(out) == []


@pytest.mark.parametrize(("number", "by"), [(signal.SIGINT, ""), (signal.SIGTERM, " by SIGTERM")])
def test_an_interrupt_writes_a_checkpoint_where_it_stopped(number, by, tmp_path):
    out = tmp_path / "run"
    argv = [*TINY, "--steps", "100000", "--log_every", "1", "--checkpoint_every", "100000", "--out", str(out)]
    process = subprocess.Popen([sys.executable, "-m", "adance", *argv], stderr=subprocess.PIPE, text=True)
    try:
        began = time.monotonic()
        while not (out / "metrics.jsonl").exists() and time.monotonic() - began < 120:
            time.sleep(0.01)
        process.send_signal(number)
        error = process.communicate(timeout=120)[1]
    finally:
        process.kill()
    assert process.returncode == 128 + number
    last = json.loads((out / "metrics.jsonl").read_text().splitlines()[-1])
    how = f"interrupted{by} at step {last['step']}; to continue: adance train --resume {out}"
    warning = f"adance: warning: interrupted{by}: writing a checkpoint"
    assert error.splitlines() == [warning, f"adance train: error: {how}"]
    assert load(out).step == last["step"] > 0
    trainer = Trainer.resume(out, steps=last["step"] + 5, show_progress=False)
    assert trainer.step == last["step"]
    assert trainer.fit().step == last["step"] + 5


def test_a_second_ctrl_c_interrupts_at_once():
    from adance.training.interrupt import interrupt_flag

    # a shell starts what runs in the background with the signal ignored
    found, before = signal.signal(signal.SIGINT, signal.default_int_handler), signal.default_int_handler
    try:
        with interrupt_flag() as asked:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            assert asked.is_set()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, found)
