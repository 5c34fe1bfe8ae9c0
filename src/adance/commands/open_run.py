"""The run that a command is given."""

from pathlib import Path

from jsonargparse import Namespace

from adance.errors import InputError
from adance.sweeps import SweepFolder
from adance.training import Run, load


def open_run(args: Namespace, of_all: str = "") -> Run:
    """The run in the folder ``args.run``, as ``args`` wants it.

    Args:
        args: Of the command: ``run``, ``weights``, ``step`` and ``device``.
        of_all: How the command's work is done for all runs of a sweep.

    Raises:
        InputError: The folder holds no run, or not what was asked for.
    """
    refuse_sweep(args.run, of_all)
    return load(args.run, weights=args.weights, step=args.step, device=args.device)


def refuse_sweep(path: str, of_all: str = "") -> None:
    """Check that ``path`` is not the folder of a sweep.

    Raises:
        InputError: It is; the message names one of its runs.
    """
    sweep = SweepFolder(path)
    if sweep.exists() and not (sweep.path / "config.yaml").exists():
        run = Path(path, sweep.read()["runs"][0]["name"])
        raise InputError(f"{path} is the folder of a sweep; give one of its runs, such as {run}{of_all}")
