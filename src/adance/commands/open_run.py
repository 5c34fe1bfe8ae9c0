"""The run on which a command works."""

from pathlib import Path
from typing import Literal

from jsonargparse import Namespace

from adance.commands.parser import WEIGHTS_HELP, Parser
from adance.errors import InputError
from adance.sweeps import SweepFolder
from adance.training import Run, load
from adance.training.hub import HUB_PREFIX, copy_from_hub
from adance.training.pretrained import PREFIX, copy_pretrained

RUN_HELP = "the run folder, pretrained:NAME, or hf://OWNER/NAME"


def add_run_options(parser: Parser) -> None:
    """Add the options that say which weights of a run to open, and where."""
    weights = Literal["average", "last"] | None
    parser.option("--weights", type=weights, default=None, help=WEIGHTS_HELP)
    steps = int | Literal["best"] | None
    parser.option("--step", type=steps, default=None, help="step of the checkpoint, or best; default: the last")
    parser.option("--device", type=str, default="cpu", help="cpu or cuda")


def open_run(args: Namespace, of_all: str = "") -> Run:
    """Open the run in the folder ``args.run``.

    Args:
        args: The arguments ``run``, ``weights``, ``step`` and ``device`` of the command.
        of_all: How to do the same for all runs of a sweep, for the error message.

    Raises:
        InputError: The folder holds no run, or lacks the checkpoint or the weights.
    """
    path = run_path(args.run)
    refuse_sweep(path, of_all)
    return load(path, weights=args.weights, step=args.step, device=args.device)


def run_path(text: str) -> str:
    """The run folder that an argument names; a pretrained run or a run on the Hub is first copied into ``runs``.

    Raises:
        InputError: There is no such run, or it cannot be copied.
    """
    if text.startswith(PREFIX):
        return str(copy_pretrained(text.removeprefix(PREFIX)))
    return str(copy_from_hub(text)) if text.startswith(HUB_PREFIX) else text


def refuse_sweep(path: str, of_all: str = "") -> None:
    """Check that ``path`` is not a sweep folder.

    Raises:
        InputError: The path is a sweep folder; the message names one of its runs.
    """
    sweep = SweepFolder(path)
    if sweep.exists() and not (sweep.path / "config.yaml").exists():
        run = Path(path, sweep.read()["runs"][0]["name"])
        raise InputError(f"{path} is a sweep folder; give one of its runs, such as {run}{of_all}")
