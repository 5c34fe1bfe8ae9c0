"""Commands in processes of their own, which start at once, and what their runs end with."""

import json
import multiprocessing
import os
import resource
import signal
import sys

from adance.cli import main
from adance.training.run_folder import RunFolder

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


def command_line(argv, die_at, full_at, stdout, stderr):
    """Run the command in this process, which meets its end, or a full disk, when it puts something on disk.

    Args:
        argv: The arguments.
        die_at: Kill the process at this time that something is put on disk; 0 for never.
        full_at: From this time on no file can grow beyond 600 bytes; 0 for never.
        stdout: Path of the file for standard output.
        stderr: Path of the file for standard error.
    """
    from adance import atomic

    for number, path in ((1, stdout), (2, stderr)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644), number)
    done, to_disk = 0, atomic._to_disk

    def counting(path):
        nonlocal done
        done += 1
        if done == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if done == full_at:
            resource.setrlimit(resource.RLIMIT_FSIZE, (600, resource.RLIM_INFINITY))
        to_disk(path)

    atomic._to_disk = counting
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # as in a process of its own
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    status = main([str(arg) for arg in argv])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    sys.exit(status)


def start(argv, die_at=0, full_at=0, stdout=os.devnull, stderr=os.devnull):
    """Start a command."""
    args = [str(arg) for arg in argv], die_at, full_at, str(stdout), str(stderr)
    process = CONTEXT.Process(target=command_line, args=args, daemon=True)
    process.start()
    return process


def finish(argv, *args, **options):
    """Run a command to its end, and return its exit status."""
    process = start(argv, *args, **options)
    process.join(120)
    return process.exitcode


def end_of(folder):
    """All that the last checkpoint holds but the time, and the metrics but the time."""
    last = sorted((folder / "checkpoints").iterdir())[-1]
    state = json.loads((last / "state.json").read_text())
    del state["seconds"], state["crc32"]
    rows = RunFolder(folder).read_metrics()
    for row in rows:
        del row["seconds"]
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}, state, rows
