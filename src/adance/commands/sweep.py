"""``adance sweep``."""

import argparse
import contextlib
import io
import logging
import re
import shlex
import sys
from collections.abc import Sequence
from functools import partial

from adance.commands import evaluate
from adance.commands.choices import OBJECTS, plain_settings, read, read_text
from adance.commands.given import option_of
from adance.commands.parser import TRUST_HELP, VERBOSITY, HelpPrinter
from adance.commands.process import log_level, process_settings
from adance.commands.train import new_trainer, trainer_options
from adance.errors import DivergedError, InputError
from adance.registry import trust_typed, trusted
from adance.sweeps import Axis, Job, Outcome, SweepFolder, as_markdown, combinations, run_jobs, run_names, summarize
from adance.sweeps.axes import Values
from adance.sweeps.backends import BACKENDS
from adance.sweeps.job import FINAL, read_outcome
from adance.sweeps.progress import sweep_progress
from adance.sweeps.table import matching
from adance.training import Trainer
from adance.training.config import DATA_KEYS
from adance.training.data_checks import check_same_data
from adance.training.run_folder import RunFolder

NOT_VARIED = ("config", "out", "resume", "device", "trackers", "profile")

log = logging.getLogger("adance")


def run(argv: list[str]) -> None:
    """Train every combination, print the table of means and standard deviations, and report failures."""
    args, options = _parser().parse_known_args(argv)
    if "--print_config" in options:
        raise InputError("--print_config is for adance train: save its output to a file, and pass that with --config")
    if args.jobs < 1:
        raise InputError(f"--jobs must be 1 or more, got {args.jobs}")
    words = args.evaluate.split(",") if args.evaluate else []
    if args.evaluate_with and not words:
        raise InputError("--evaluate_with sets options of the evaluation: add --evaluate")
    evaluation = partial(evaluate_job, options=_evaluation(args.evaluate_with)) if words else None
    folder, points = SweepFolder(args.out), combinations([Axis.parse(text) for text in args.over])
    settings = _config(options, {})
    for values in points:  # a class that was typed is trusted; one that the folder names is not
        _config(options, values, trusted=True)
    points = folder.extend(points, settings)
    names = run_names(points)
    jobs = [
        Job(name, values, (folder.path / name).absolute(), _config(options, values), trusted())
        for name, values in zip(names, points, strict=True)
    ]
    before = [read_outcome(job.name, job.values, job.folder) for job in jobs]
    folder.write(settings, before)
    ended = sum(outcome.status in FINAL for outcome in before)
    log.info(f"sweep of {len(jobs)} runs" + f", {ended} of which have ended" * (ended > 0))
    level = log_level(argv)
    # a process of its own does not know of the bars on the terminal
    context = partial(process_settings, max(level, logging.WARNING) if sys.stderr.isatty() else level)
    with sweep_progress(jobs, shown=level < logging.WARNING):
        outcomes = run_jobs(jobs, train_job, evaluation, backend=args.backend, processes=args.jobs, context=context)
    folder.write(settings, outcomes)
    print(as_markdown(summarize(outcomes), words))
    print(f"sweep: {folder.path}")
    _warn_of_no_match(words, outcomes)
    _complain(outcomes)


def train_job(job: Job) -> None:
    """Train or resume a run of a sweep."""
    choices = read_text(job.config)
    args = choices.args
    args.quiet = True  # the sweep shows progress itself
    if (job.folder / "config.yaml").exists():
        trainer = Trainer.resume(job.folder, **trainer_options(args))
    else:
        trainer = new_trainer(choices, str(job.folder))
        _refuse_other_data(job, trainer)
    trainer.fit()


def _refuse_other_data(job: Job, trainer: Trainer) -> None:
    """Check the data against those of an earlier run of the sweep with the same data settings.

    Raises:
        InputError: The data have changed since, so that runs could not be compared.
    """
    data = _data_values(job.values)
    for earlier in SweepFolder(job.folder.parent).outcomes():
        if earlier.status in FINAL and _data_values(earlier.values) == data:
            check_same_data(RunFolder(job.folder.parent / earlier.name), trainer.data_description)
            return


def _data_values(values: Values) -> Values:
    """The data settings of a combination."""
    return {key: value for key, value in values.items() if key in DATA_KEYS}


def evaluate_job(job: Job, options: Sequence[str]) -> None:
    """Evaluate a trained run as ``adance evaluate`` does, printing nothing, unless its evaluation is current."""
    if evaluate.is_current(job.folder, ["--quiet", *options]):
        return
    log.info(f"{job.name}: evaluating")
    with contextlib.redirect_stdout(io.StringIO()):
        evaluate.run([str(job.folder), "--quiet", *options])


def _evaluation(text: str) -> list[str]:
    """The options of ``adance evaluate``, checked before anything is trained."""
    try:
        options = trust_typed(shlex.split(text))
        evaluate.read(["RUN", *options])
    except ValueError as error:
        raise InputError(f"--evaluate_with {text!r}: {error}") from None
    return options


def _warn_of_no_match(words: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    names = {name for outcome in outcomes for name in outcome.evaluation}
    kinds = sorted({re.split(r" \(|, ", name)[0] for name in names})
    for word in words:
        if names and not matching(word, names):
            log.warning(f"--evaluate {word}: no metric has this word in its name. Available: {', '.join(kinds)}")


def _parser() -> argparse.ArgumentParser:
    parser = HelpPrinter(
        prog="adance sweep",
        description="Train at every combination of some settings' values. All options of adance train apply to "
        "every run. Started again, a sweep continues where it stopped.",
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
    for name, does in VERBOSITY.items():
        parser.add_argument(name, action="store_true", help=does)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each (default: 1)")
    parser.add_argument(
        "--backend", choices=BACKENDS, default="loky", help="library that runs the processes (default: loky)"
    )
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


def _config(options: Sequence[str], values: Values, *, trusted: bool = False) -> str:
    """All settings of one run, checked, as YAML."""
    for key in values:
        if key in NOT_VARIED:
            raise InputError(f"--over {key}: a sweep cannot vary this setting")
        if option_of(key) not in OBJECTS and key not in plain_settings():
            example = "a full name, as in objective.interval"
            raise InputError(f"--over {key}: adance train has no such setting; give {example}")
    choices = read(options, values, trusted=trusted)
    if choices.args.resume is not None:
        raise InputError("--resume is for adance train; start a sweep again to resume it")
    _ = choices.settings
    choices.make_objective()
    return choices.as_yaml()


def _complain(outcomes: Sequence[Outcome]) -> None:
    """Raise an error that names every run that did not finish well, with the exit status of ``adance``."""
    bad = [outcome for outcome in outcomes if outcome.status != "done" or outcome.message]
    if not bad:
        return
    statuses = {outcome.status for outcome in bad}
    if "interrupted" in statuses:
        raise KeyboardInterrupt
    listed = "; ".join(f"{outcome.name} {outcome.status}: {outcome.message}" for outcome in bad)
    message = f"{len(bad)} of {len(outcomes)} runs did not finish well: {listed}"
    if "diverged" in statuses:
        raise DivergedError(message)
    if "refused" in statuses or statuses == {"done"}:
        raise InputError(message)
    raise SystemExit(f"adance sweep: error: {message}")
