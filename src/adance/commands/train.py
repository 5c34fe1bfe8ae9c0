"""``adance train``."""

import dataclasses
import inspect
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

from jsonargparse import ArgumentParser, Namespace
from torch import nn

import adance.energies
import adance.objectives
import adance.samplers  # noqa: F401  (so that classes are found by their bare names)
from adance.commands.near_misses import choices
from adance.commands.open_run import refuse_sweep
from adance.commands.parser import instantiate, make_parser, with_full_energy_name
from adance.configurable import remember
from adance.data import load_data
from adance.errors import InputError
from adance.objectives import Recipe
from adance.training import Run, Settings, Trainer
from adance.training.config import seeded

SWITCHES = {
    "flip": "mirror each image left to right with probability ½",
    "dequantize": "add uniform noise of one quantisation level to images",
    "allow_batch_norm": "insist on an energy with batch norm",
}
"""Options that need no value."""

WHEN_RESUMING = {"--resume", "--steps", "--device", "--trackers", "--quiet", "--profile"}


def run(argv: list[str]) -> None:
    """Train, and say where the run is."""
    if argv[-1:] == ["--objective.help"]:
        print(_objectives())
        return
    parser = train_parser()
    args = parser.parse_args(with_full_energy_name(argv))
    trainer = _resume(args, argv) if args.resume else new_trainer(parser, args)
    _report(_fit(trainer))


def train_parser() -> ArgumentParser:
    """The parser of all settings of a run."""
    parser = make_parser("train", "Train an energy-based model into a run folder.")
    parser.add_argument("--config", action="config", help="a file of these settings, in YAML")
    parser.add_argument("--data", type=str, default="digits", help="a name, or a .npz, .npy, .csv or folder of images")
    parser.add_argument("--held_out", type=float, default=0.1, help="share of rows held out where data have no split")
    parser.add_argument("--image_size", type=int | None, default=None, help="side that images are resized to")
    parser.add_argument("--data_seed", type=int, default=0, help="seed of drawn data and of the split")
    energy = parser.add_argument(
        "--energy",
        type=Callable[[Sequence[int]], nn.Module],
        default="adance.energies.MLP",
        help="MLP, ConvNet, ClassMLP (of data with labels), or the path of a class whose first argument is the shape "
        "of an event",
    )
    energy.sub_add_kwargs["fail_untyped"] = False  # a class of one's own need not have type hints
    parser.add_argument(
        "--objective",
        type=Recipe,
        default={"class_path": "adance.objectives.AdaNCE"},
        help="AdaNCE, AdaBRM, NCE, BRM, RankingNCE, ConditionalNCE, ACE, FCE, MaximumLikelihood, "
        "ContrastiveDivergence, PersistentCD, ScoreMatching, DenoisingScoreMatching, or the path of a class",
    )
    parser.add_class_arguments(Settings, None, skip=set(SWITCHES))
    for name, does in SWITCHES.items():
        parser.add_argument(f"--{name}", type=bool, nargs="?", const=True, default=False, help=does)
    parser.add_argument("--out", type=str | None, default=None, help="run folder; default: runs/<data>-<objective>-<n>")
    parser.add_argument("--resume", type=str | None, default=None, help="go on with the run in this folder")
    parser.add_argument("--device", type=str | None, default=None, help="cpu or cuda; by default the best there is")
    parser.add_argument("--trackers", type=list[str], default=[], help="experiment trackers: tensorboard, wandb, …")
    parser.add_argument("--profile", action="store_true", help="say at the end where the time went")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def new_trainer(parser: ArgumentParser, args: Namespace) -> Trainer:
    """The trainer of a new run.

    Raises:
        InputError: The settings do not fit together or to the data; nothing has been written.
    """
    if args.out == "" or args.data == "":
        raise InputError("--out and --data are paths or names, not empty; . is the current folder")
    if args.data is None:
        raise InputError("data is null, as in the config of a run on data in memory: give a name or a path by --data")
    made = instantiate(parser, args)
    settings = settings_of(made)
    data = load_data(args.data, seed=args.data_seed, held_out=args.held_out, image_size=args.image_size)
    with seeded(settings.seed):
        energy = _make_energy(made.energy, args.energy, data.event_shape)
    insist = args.allow_batch_norm
    return Trainer(energy, made.objective, data, settings, args.out, allow_batch_norm=insist, **_options(args))


def _objectives() -> str:
    """The objectives by name, with the first line of what they say of themselves."""
    said = {name: str(inspect.getdoc(objective)).splitlines()[0] for name, objective in choices("objective").items()}
    width = max(map(len, said))
    listed = "\n".join(f"  {name:<{width}}  {line.replace('``', '')}" for name, line in sorted(said.items()))
    return f"objectives:\n{listed}\n\n'adance train --objective.help NAME' shows the settings of one"


def settings_of(made: Namespace) -> Settings:
    """The settings of the loop among all settings.

    Raises:
        InputError: One is out of its range.
    """
    return Settings(**{field.name: made[field.name] for field in dataclasses.fields(Settings)})


def _make_energy(make: Callable[[Sequence[int]], nn.Module], args: Any, event_shape: tuple[int, ...]) -> nn.Module:
    try:
        energy = make(event_shape)
    except (TypeError, RuntimeError) as error:
        raise InputError(f"--energy: cannot be made for events of shape {event_shape}: {error}") from None
    if not hasattr(energy, "init_args"):
        shape_name = next(iter(inspect.signature(type(energy)).parameters))
        given = args.init_args.as_dict() if "init_args" in args else {}
        remember(energy, {shape_name: list(event_shape), **given})
    return energy


def _resume(args: Namespace, argv: list[str]) -> Trainer:
    given = {token.partition("=")[0] for token in argv if token.startswith("--")}
    if given - WHEN_RESUMING:
        changed = ", ".join(sorted(given - WHEN_RESUMING))
        raise InputError(f"{changed} cannot change when resuming; only {', '.join(sorted(WHEN_RESUMING))} may be given")
    refuse_sweep(args.resume, "; or go on with all: start the sweep again")
    steps = args.steps if "--steps" in given else None
    return Trainer.resume(args.resume, steps=steps, **_options(args))


def _fit(trainer: Trainer) -> Run:
    """Train; where that is interrupted, the interrupt says how to go on."""
    steps = trainer.settings.steps
    if trainer.step == steps > 0 and trainer.accelerator.is_main_process:
        print(f"already at {steps} of {steps} steps; --steps N goes on", file=sys.stderr)
    try:
        return trainer.fit()
    except KeyboardInterrupt:
        saved = trainer.folder.checkpoint_steps()
        if not saved:
            raise
        command = shlex.join(["adance", "train", "--resume", str(trainer.folder.path)])
        raise KeyboardInterrupt(f"interrupted at step {saved[-1]}; go on with {command}") from None


def _options(args: Namespace) -> dict[str, Any]:
    shown = {"show_progress": not args.quiet, "profile": args.profile}
    return {"device": args.device, "trackers": args.trackers, **shown}


def _report(run: Run) -> None:
    pictures = sorted(run.folder.samples.glob("[0-9]*.png"))
    print(f"run: {run.folder.path}")
    if pictures:
        print(f"samples: {pictures[-1]}")
    if not run.averaged:
        print("weights: the last step's", file=sys.stderr)
