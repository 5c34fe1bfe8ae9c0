"""``adance sweep``."""

import argparse
import contextlib
import importlib
import io
import re
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from types import ModuleType

from adance.commands.choices import OBJECTS, plain_settings, read, read_text
from adance.commands.given import option_of
from adance.commands.parser import TRUST_HELP
from adance.commands.train import new_trainer
from adance.errors import DivergedError, InputError
from adance.registry import trust_typed, trusted
from adance.sweeps import Axis, Job, Outcome, SweepFolder, as_markdown, combinations, run_jobs, run_names, summarize
from adance.sweeps.axes import Values
from adance.sweeps.backends import BACKENDS
from adance.sweeps.job import ENDINGS, read_outcome
from adance.sweeps.progress import steps_told
from adance.sweeps.table import matching
from adance.training import Trainer
from adance.training.config import DATA_KEYS
from adance.training.given_data import check_same_data
from adance.training.run_folder import RunFolder

NOT_VARIED = ("config", "out", "resume", "device", "trackers", "quiet", "profile")


def run(argv: list[str]) -> None:
    """Train every combination, print the table of means and spreads, and name what went wrong."""
    args, options = _parser().parse_known_args(argv)
    if args.jobs < 1:
        raise InputError(f"--jobs must be 1 or more, got {args.jobs}")
    words = args.evaluate.split(",") if args.evaluate else []
    if args.evaluate_with and not words:
        raise InputError("--evaluate_with is of the evaluation that --evaluate asks for; give both")
    evaluate = partial(evaluate_job, options=_evaluation(args.evaluate_with)) if words else None
    folder, points = SweepFolder(args.out), combinations([Axis.parse(text) for text in args.over])
    settings = _config(options, {})
    for values in points:  # a class among them is trusted, since it was typed; what the folder names is not
        _config(options, values, typed=True)
    points = folder.extend(points, settings)
    names = run_names(points)
    jobs = [
        Job(name, values, (folder.path / name).absolute(), _config(options, values), trusted())
        for name, values in zip(names, points, strict=True)
    ]
    before = [read_outcome(job.name, job.values, job.folder) for job in jobs]
    folder.write(settings, before)
    ended = sum(outcome.status in ENDINGS for outcome in before)
    print(f"sweep of {len(jobs)} runs" + f", {ended} of which have ended" * (ended > 0), file=sys.stderr, flush=True)
    with steps_told(jobs):
        outcomes = run_jobs(jobs, train_job, evaluate, backend=args.backend, processes=args.jobs)
    folder.write(settings, outcomes)
    print(as_markdown(summarize(outcomes), words))
    print(f"sweep: {folder.path}")
    _warn_of_no_match(words, outcomes)
    _complain(outcomes)


def train_job(job: Job) -> None:
    """Train a run of a sweep, or go on with it."""
    choices = read_text(job.config)
    args = choices.args
    if (job.folder / "config.yaml").exists():
        trainer = Trainer.resume(job.folder, device=args.device, trackers=args.trackers, show_progress=False)
    else:
        args.quiet = True
        trainer = new_trainer(choices, str(job.folder))
        _refuse_other_data(job, trainer)
    trainer.fit()


def _refuse_other_data(job: Job, trainer: Trainer) -> None:
    """Check the data against those of an earlier run of the sweep that has the same by its settings.

    Raises:
        InputError: They have changed since, and a table of both would compare what cannot be compared.
    """
    data = _data_values(job.values)
    for earlier in SweepFolder(job.folder.parent).outcomes():
        if earlier.status in ENDINGS and _data_values(earlier.values) == data:
            check_same_data(RunFolder(job.folder.parent / earlier.name), trainer.data_description)
            return


def _data_values(values: Values) -> Values:
    """The part of a combination that says which data."""
    return {key: value for key, value in values.items() if key in DATA_KEYS}


def evaluate_job(job: Job, options: Sequence[str]) -> None:
    """Evaluate a trained run of a sweep as ``adance evaluate`` does, in silence, unless that has been done."""
    command = _evaluate_command()
    if command.is_current(job.folder, ["--quiet", *options]):
        return
    print(f"{job.name}: evaluating", file=sys.stderr, flush=True)
    with contextlib.redirect_stdout(io.StringIO()):
        command.run([str(job.folder), "--quiet", *options])


def _evaluate_command() -> ModuleType:
    try:
        return importlib.import_module("adance.commands.evaluate")
    except ModuleNotFoundError as error:
        raise InputError(f"--evaluate needs {error.name}, which is not installed") from None


def _evaluation(text: str) -> list[str]:
    """The options of ``adance evaluate``, checked before anything is trained."""
    try:
        options = trust_typed(shlex.split(text))
        _evaluate_command().read(["RUN", *options])
    except ValueError as error:
        raise InputError(f"--evaluate_with {text!r}: {error}") from None
    return options


def _warn_of_no_match(words: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    names = {name for outcome in outcomes for name in outcome.measurements}
    kinds = sorted({re.split(r" \(|, ", name)[0] for name in names})
    for word in words:
        if names and not matching(word, names):
            print(f"--evaluate {word}: no metric has it in its name; available: {', '.join(kinds)}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="adance sweep",
        description="Train at every combination of some settings' values. All options of adance train serve too; "
        "started again, a sweep goes on where it stopped.",
        exit_on_error=False,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--over",
        action="append",
        default=[],
        metavar="SETTING=VALUE,…",
        help="a setting to vary and its values, as in objective.interval=1,5,10; once for each setting",
    )
    parser.add_argument("--trust", metavar="MODULE", help=TRUST_HELP)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each (default: 1)")
    parser.add_argument("--backend", choices=BACKENDS, default="loky", help="where they run (default: loky)")
    parser.add_argument("--out", default="runs/sweep", help="folder of the sweep (default: runs/sweep)")
    parser.add_argument(
        "--evaluate", metavar="WORD,…", help="evaluate every run, and show the metrics with these words in their names"
    )
    parser.add_argument(
        "--evaluate_with",
        metavar="OPTIONS",
        default="",
        help="options of adance evaluate, as in '--features inception'",
    )
    return parser


def _config(options: Sequence[str], values: Values, *, typed: bool = False) -> str:
    """All settings of one run, as YAML, checked."""
    for key in values:
        if key in NOT_VARIED:
            raise InputError(f"--over {key}: cannot be varied")
        if option_of(key) not in OBJECTS and key not in plain_settings():
            example = "a full name, as in objective.interval"
            raise InputError(f"--over {key}: adance train has no such setting; give {example}")
    choices = read(options, values, typed=typed)
    if choices.args.resume is not None:
        raise InputError("--resume is for adance train; a sweep that is started again goes on by itself")
    _ = choices.settings
    choices.make_objective()
    return choices.as_yaml()


def _complain(outcomes: Sequence[Outcome]) -> None:
    """Name every run that did not end well, by an error of the status that ``adance`` exits with."""
    bad = [outcome for outcome in outcomes if outcome.status != "done" or outcome.message]
    if not bad:
        return
    statuses = {outcome.status for outcome in bad}
    if "interrupted" in statuses:
        raise KeyboardInterrupt
    listed = "; ".join(f"{outcome.name} {outcome.status}: {outcome.message}" for outcome in bad)
    message = f"{len(bad)} of {len(outcomes)} runs did not end well: {listed}"
    if "diverged" in statuses:
        raise DivergedError(message)
    if "refused" in statuses or statuses == {"done"}:
        raise InputError(message)
    raise SystemExit(f"adance sweep: error: {message}")
