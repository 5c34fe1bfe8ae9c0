"""Training in two processes, as ``accelerate launch`` starts them."""

import json
import os
import socket
import subprocess
import sys

import pytest
import torch

from adance.training import load


def launch(folder, *argv):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = "--cpu --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no"
    command = [sys.executable, "-m", "accelerate.commands.launch", *options.split(), "--main_process_port", str(port)]
    return subprocess.run(
        [*command, "--module", "adance", "train", *argv],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_two_processes_write_one_run(tmp_path):
    probe = "import torch.distributed as d, sys; sys.exit(not (d.is_available() and d.is_gloo_available()))"
    if subprocess.run([sys.executable, "-c", probe]).returncode:
        pytest.skip("torch was built without gloo, which carries the messages between processes on the CPU")
    sampler = "--objective.sampler Langevin --objective.sampler.steps 2"
    argv = (
        "--data digits --energy MLP --energy.hidden [8] --objective AdaNCE --objective.interval 5 --objective.pool 16 "
        f"--objective.buffer 32 {sampler} --batch_size 8 --steps 12 --log_every 4 --checkpoint_every 6 --device cpu"
    )
    done = launch(tmp_path, *argv.split())
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["digits-AdaNCE-1"]
    folder = tmp_path / "runs" / "digits-AdaNCE-1"
    assert [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()] == [4, 8, 12]
    assert [path for path in folder.rglob("*") if path.name.endswith(".part")] == []
    for weights in ("last", "average"):
        run = load(folder, weights=weights)
        assert run.step == 12
        assert all(value.isfinite().all() for value in run.energy.state_dict().values())
        assert run.score(torch.zeros(2, 1, 8, 8)).isfinite().all()

    resumed = launch(tmp_path, "--resume", str(folder), "--steps", "16")
    assert resumed.returncode == 0, resumed.stderr
    assert load(folder).step == 16
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [folder.name]
    x = torch.zeros(1, 1, 8, 8)
    assert not torch.equal(load(folder, step=12, weights="last").score(x), load(folder, weights="last").score(x))
