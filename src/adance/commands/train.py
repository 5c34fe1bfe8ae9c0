"""``adance train``."""

import codecs
import logging
import shlex
import signal
import sys
from typing import Any

from jsonargparse import Namespace

from adance.commands.choices import Choices, help_asked, read
from adance.commands.open_run import refuse_sweep
from adance.data import load_data
from adance.errors import InputError
from adance.evaluation import SampleDistance
from adance.randomness import fork_rng
from adance.signals import Interrupted
from adance.training import Run, Trainer

WHEN_RESUMING = {"--resume", "--steps", "--patience", "--device", "--trackers", "--quiet", "--verbose", "--profile"}

log = logging.getLogger("adance")


def run(argv: list[str]) -> None:
    """Train, and print the path of the run."""
    text = help_asked(argv)
    if text is not None:
        print(text)
        return
    choices = read([token for token in argv if token != "--print_config"])
    if "--print_config" in argv:
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        print(choices.as_yaml(unicode=codecs.lookup(encoding).name == "utf-8"), end="")
        return
    trainer = _resume(choices.args, argv) if choices.args.resume else new_trainer(choices)
    run = _fit(trainer)
    if trainer.profile_table:
        print(trainer.profile_table)
    if trainer.accelerator.is_main_process:
        _report(run)


def new_trainer(choices: Choices, out: str | None = None) -> Trainer:
    """The trainer of a new run, in the folder ``out``, by default that of the settings.

    Raises:
        InputError: The settings do not fit each other or the data; nothing has been written.
    """
    args = choices.args
    if args.out == "" or args.data == "":
        raise InputError("--out and --data must not be empty; use . for the current folder")
    if args.data is None:
        raise InputError(
            "data is null, because the run was trained on data in memory: give a name or a path with --data"
        )
    objective, settings = choices.make_objective(), choices.settings
    data = load_data(args.data, seed=args.data_seed, held_out=args.held_out, image_size=args.image_size)
    with fork_rng(settings.seed):
        energy = choices.make_energy(data.event_shape, objective)
    insist = args.allow_batch_norm
    return Trainer(energy, objective, data, settings, out or args.out, allow_batch_norm=insist, **trainer_options(args))


def _resume(args: Namespace, argv: list[str]) -> Trainer:
    asked = {token.partition("=")[0] for token in argv if token.startswith("--")}
    if asked - WHEN_RESUMING:
        changed = ", ".join(sorted(asked - WHEN_RESUMING))
        raise InputError(f"{changed} cannot change when resuming. Allowed: {', '.join(sorted(WHEN_RESUMING))}")
    refuse_sweep(args.resume, "; or continue all of them: start the sweep again")
    values = {name: args[name] for name in ("steps", "patience") if f"--{name}" in asked}
    return Trainer.resume(args.resume, **values, **trainer_options(args))


def _fit(trainer: Trainer) -> Run:
    """Train; an interrupt says how to resume."""
    steps = trainer.settings.steps
    if trainer.step == steps > 0 and trainer.accelerator.is_main_process:
        log.warning(f"already at {steps} of {steps} steps; --steps N continues training")
    try:
        return trainer.fit()
    except KeyboardInterrupt as error:
        saved = trainer.folder.checkpoint_steps()
        if not saved:
            raise
        command = shlex.join(["adance", "train", "--resume", str(trainer.folder.path)])
        number = error.number if isinstance(error, Interrupted) else signal.SIGINT
        raise Interrupted(number, f"{Interrupted(number)} at step {saved[-1]}; to continue: {command}") from None


def trainer_options(args: Namespace) -> dict[str, Any]:
    """The keyword arguments for a new or resumed trainer."""
    shown = {"show_progress": not args.quiet, "profile": args.profile}
    return {"device": args.device, "trackers": args.trackers, "metric": SampleDistance, **shown}


def _report(run: Run) -> None:
    pictures = sorted(run.folder.samples.glob("[0-9]*.png"))
    print(f"run: {run.folder.path}")
    if pictures:
        print(f"samples: {pictures[-1]}")
    if not run.averaged:
        print("weights: last (no moving average)")
