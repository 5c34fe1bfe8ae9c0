"""The lines of docs/several-processes.md start as many processes as they say."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from ranks import free_port

from adance.training import load

PAGE = Path(__file__).parents[2] / "docs" / "several-processes.md"
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
TINY = (
    "--energy MLP --energy.hidden [8] --objective AdaNCE --objective.sampler Langevin --objective.sampler.steps 2 "
    "--objective.sampler.noise_std 0.005 --objective.interval 5 --objective.pool 16 --objective.buffer 32 "
    "--batch_size 8 --log_every 4 --checkpoint_every 6 --device cpu"
)
PROGRAMS = {"torchrun": "torch.distributed.run", "accelerate": "accelerate.commands.accelerate_cli"}
SLURM = re.search(r"^srun (.*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[1]
IN_TWO = "on cpu in 2 processes, each with 8 of the 16 rows of a batch, into"


def launch(line, folder, *more):
    """Start a line of the page, from this environment, with small settings and a free port."""
    program, *argv = shlex.split(line)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", PROGRAMS[program], *argv, *TINY.split(), *more],
        cwd=folder,
        env={name: value for name, value in environment.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines_of(program, nodes):
    """The lines of the page that start ``program`` on this number of nodes, with a free port."""
    (block,) = [block for block in BLOCKS if block.startswith(f"$ {program}") and block.count("$") == nodes]
    lines = [line.removeprefix("$ ") for line in block.splitlines()]
    port = free_port()
    return [re.sub(r"(_port) \d+", rf"\1 {port}", line) for line in lines]


def run_page(program, nodes, folder):
    started = [launch(line, folder, "--steps", "8") for line in lines_of(program, nodes)]
    try:
        output = [process.communicate(timeout=180) for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * nodes, output
    printed, logged = ("".join(texts) for texts in zip(*output, strict=True))
    assert printed.count("run: runs/two") == 1
    assert logged.count(IN_TWO) == 1
    assert [path.name for path in (folder / "runs").iterdir()] == ["two"]
    run = load(folder / "runs" / "two")
    assert run.step == 8
    assert (run.folder.checkpoint(8) / "ranks.safetensors").exists()
    assert run.score(torch.zeros(2, 1, 8, 8)).isfinite().all()


def test_torchrun_starts_two_processes(tmp_path):
    run_page("torchrun", 1, tmp_path)


@pytest.mark.hardening
@pytest.mark.parametrize(("program", "nodes"), [("torchrun", 2), ("accelerate", 1), ("accelerate", 2)])
def test_launchers_start_two_processes(program, nodes, tmp_path):
    run_page(program, nodes, tmp_path)


@pytest.mark.hardening
def test_accelerate_with_cpu_alone_warns_that_there_is_one_process(tmp_path):
    (line,) = lines_of("accelerate", 1)
    process = launch(line.replace("--multi_gpu", "--cpu"), tmp_path, "--steps", "2")
    logged = process.communicate(timeout=180)[1]
    assert process.returncode == 0
    assert "training runs in one process, since accelerate launch --cpu starts several only through MPI" in logged
    assert "processes, each with" not in logged


@pytest.mark.hardening
def test_ctrl_c_at_the_launcher_writes_one_checkpoint(tmp_path):
    (line,) = lines_of("torchrun", 1)
    process = launch(line, tmp_path, "--steps", "1000000", "--log_every", "1", "--compile", "off")
    folder = tmp_path / "runs" / "two"
    began = time.monotonic()
    while not (folder / "metrics.jsonl").exists() and time.monotonic() - began < 120:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    logged = process.communicate(timeout=120)[1]
    found = re.search(r"interrupted at step (\d+); to continue: adance train --resume runs/two", logged)
    assert found, logged
    assert load(folder).step == int(found[1]) > 0
    assert (folder / "checkpoints" / f"{int(found[1]):08d}" / "ranks.safetensors").exists()


@pytest.mark.hardening
def test_tasks_of_slurm_write_one_checkpoint_when_each_gets_a_signal(tmp_path):
    command = SLURM.removesuffix("'").replace("python", sys.executable)
    command += f" {TINY} --steps 1000000 --log_every 1 --compile off'"
    master = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    tasks = [
        subprocess.Popen(
            shlex.split(command),
            cwd=tmp_path,
            env={**os.environ, **master, "SLURM_PROCID": str(task), "SLURM_LOCALID": str(task)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for task in range(2)
    ]
    folder, began = tmp_path / "runs" / "two", time.monotonic()
    while not (folder / "metrics.jsonl").exists() and time.monotonic() - began < 120:
        time.sleep(0.01)
    for task in tasks:
        task.send_signal(signal.SIGINT)
    logged = [task.communicate(timeout=120)[1] for task in tasks]
    assert [task.returncode for task in tasks] == [130, 130], logged
    assert logged[0].count(IN_TWO) == 1
    first, last = sorted((folder / "checkpoints").iterdir())
    assert first.name == "00000000"
    assert load(folder).step == int(last.name) > 0
    assert (last / "ranks.safetensors").exists()
