"""Where training runs: one device, or several processes that ``torchrun`` or ``accelerate launch`` started."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from accelerate.utils import broadcast_object_list

from adance.errors import InputError
from adance.training.run_folder import RunFolder


def find_device(name: str | None) -> torch.device:
    """The device ``name``; by default a GPU if there is one.

    Raises:
        InputError: The device does not exist or cannot be used.
    """
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {name!r} cannot be used: {str(error).splitlines()[0]}") from None
    return device


def make_accelerator(device: str | None, trackers: Sequence[str]) -> Accelerator:
    """The ``Accelerator`` for the device and the processes.

    Trackers write where :func:`~adance.training.trackers.track_into` says.

    Raises:
        InputError: The device cannot be used, or a tracker is not installed.
    """
    found = find_device(device)
    if found.type not in ("cpu", "cuda") or found.index is not None:
        raise InputError(f"train on 'cpu' or 'cuda', got {device!r}; choose a GPU with CUDA_VISIBLE_DEVICES")
    installed = [str(name) for name in get_available_trackers()]
    for name in trackers:
        if name not in (*installed, "all"):
            raise InputError(f"tracker {name!r} is not installed. Available: {', '.join(installed) or 'none'}")
    try:
        made = Accelerator(
            cpu=found.type == "cpu", log_with=list(trackers) or None, project_dir="runs" if trackers else None
        )
    except ValueError as error:
        raise InputError(f"cannot train on {found}: {error}") from None
    if made.device.type != found.type:
        raise InputError(f"this process has trained on {made.device.type}; train on {found.type} in a new process")
    if made.num_processes == 1 and "ACCELERATE_USE_CPU" in os.environ and "MASTER_PORT" in os.environ:
        warnings.warn(
            "training runs in one process, since accelerate launch --cpu starts several only through MPI: use "
            "torchrun, or replace --cpu with --multi_gpu, which works without GPUs too",
            stacklevel=4,
        )
    return made


def claim_folder(accelerator: Accelerator, parent: Path, name: str) -> RunFolder:
    """The folder that the main process claims for all processes, see :meth:`RunFolder.claim`.

    Raises:
        InputError: It cannot be created.
    """
    claimed = [RunFolder.claim(parent, name).path if accelerator.is_main_process else None]
    return RunFolder(broadcast_object_list(claimed)[0])
