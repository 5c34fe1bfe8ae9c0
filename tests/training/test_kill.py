"""Runs that are killed at any moment, and runs that are interrupted, go on as if nothing had happened."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from adance.cli import main
from adance.training import Trainer, load

CONTEXT = multiprocessing.get_context("forkserver")
# all that a run imports, so that a process starts at once
CONTEXT.set_forkserver_preload(
    ["adance.training", "adance.commands.train", "sklearn.datasets", "torch._dynamo", "torch.distributed.tensor"]
)

OPTIONS = (
    "--data digits --energy MLP --energy.hidden [8] --objective AdaNCE --objective.sampler Langevin "
    "--objective.sampler.steps 2 --objective.sampler.noise_std 0.005 --objective.interval 20 --objective.pool 32 "
    "--objective.buffer 64 --batch_size 16 --ema 0.99 --grad_clip 1 --checkpoint_every 5 --log_every 3 --device cpu "
    "--quiet"
)
TINY = ["train", *OPTIONS.split()]


def command_line(argv, die_at):
    """Run the command in this process, which ends itself at the ``die_at``-th time that something is put on disk."""
    from adance import atomic

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    done, to_disk = 0, atomic._to_disk

    def dying(path):
        nonlocal done
        done += 1
        if done == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        to_disk(path)

    atomic._to_disk = dying
    sys.exit(main([str(arg) for arg in argv]))


def start(argv, die_at=0):
    process = CONTEXT.Process(target=command_line, args=([str(arg) for arg in argv], die_at), daemon=True)
    process.start()
    return process


def finish(argv, die_at=0):
    process = start(argv, die_at)
    process.join(120)
    return process.exitcode


def end_of(folder):
    """All that the last checkpoint holds but the time, and the metrics but the time."""
    last = sorted((folder / "checkpoints").iterdir())[-1]
    state = json.loads((last / "state.json").read_text())
    del state["seconds"]
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        del row["seconds"]
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}, state, rows


def leftovers(folder):
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """What runs of this many steps end with."""
    ends = {}

    def run(steps):
        if steps not in ends:
            out = tmp_path_factory.mktemp("whole") / "run"
            assert finish([*TINY, "--steps", steps, "--out", out]) == 0
            ends[steps] = end_of(out)
        return ends[steps]

    return run


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


def test_ctrl_c_writes_a_checkpoint_where_it_stopped(tmp_path):
    out = tmp_path / "run"
    argv = [*TINY, "--steps", "100000", "--log_every", "1", "--checkpoint_every", "100000", "--out", str(out)]
    process = subprocess.Popen([sys.executable, "-m", "adance", *argv], stderr=subprocess.PIPE, text=True)
    try:
        began = time.monotonic()
        while not (out / "metrics.jsonl").exists() and time.monotonic() - began < 120:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=120)[1]
    finally:
        process.kill()
    assert process.returncode == 130
    last = json.loads((out / "metrics.jsonl").read_text().splitlines()[-1])
    how = f"interrupted at step {last['step']}; to continue: adance train --resume {out}"
    assert error.splitlines() == ["adance: warning: interrupted: writing a checkpoint", f"adance train: error: {how}"]
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
