"""Starts functions of the tests in several processes that train together."""

import multiprocessing
import os
import socket
import sys

import torch

CONTEXT = multiprocessing.get_context("forkserver")
# all that a run imports, so that a process starts at once
CONTEXT.set_forkserver_preload(
    ["adance.training", "adance.commands.train", "sklearn.datasets", "torch._dynamo", "torch.distributed.tensor"]
)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start(function, *args, ranks=2, folder):
    """Processes that call ``function(*args)`` as the ranks of one training, and leave what it returns in ``folder``."""
    port = free_port()
    processes = [
        CONTEXT.Process(target=_run, args=(function, args, rank, ranks, port, folder), daemon=True)
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    return processes


def finish(processes, folder):
    """What each rank returned."""
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * len(processes)
    return [torch.load(folder / f"returned-{rank}.pt", weights_only=False) for rank in range(len(processes))]


def together(function, *args, ranks=2, folder):
    """What ``function(*args)`` returns in each rank."""
    return finish(start(function, *args, ranks=ranks, folder=folder), folder)


def _run(function, args, rank, ranks, port, folder):
    torch.set_num_threads(1)
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"}
    os.environ.update({**where, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)})
    returned = function(*args)
    torch.save(returned, folder / f"returned-{rank}.pt")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    sys.exit(0)
