"""``adance evaluate``."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jsonargparse import Namespace
from rich.console import Console
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from adance.atomic import check_writable, output_file
from adance.commands.open_run import RUN_HELP, add_run_options, open_run
from adance.commands.parser import descriptions, make_parser
from adance.errors import InputError
from adance.evaluation.evaluate import evaluate_run
from adance.evaluation.options import Options
from adance.evaluation.tables import print_tables
from adance.progress import progress_bar
from adance.signatures import parameters
from adance.training import load
from adance.training.evaluation_file import read_evaluation

log = logging.getLogger("adance")

FILE = "evaluation.json"
IN_SWEEPS = (
    "; or evaluate all of them: start the sweep again with --evaluate WORD, a word in the names of the metrics to show"
)


def run(argv: list[str]) -> None:
    """Evaluate a run, print a table and write ``evaluation.json``."""
    args, options = read(argv)
    model = open_run(args, IN_SWEEPS)
    path = model.folder.path / FILE
    check_writable(path)
    with _progress(not args.quiet) as measuring:
        result = evaluate_run(model, options, say=measuring)
    with output_file(path) as part:
        part.write_text(json.dumps(result.as_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print_tables(result, Console(width=None if sys.stdout.isatty() else 120))
    print(f"metrics: {path}")


def is_current(folder: Path, argv: list[str]) -> bool:
    """Whether the run's ``evaluation.json`` was made with these arguments from the same checkpoint."""
    args, options = read([str(folder), *argv])
    model = load(folder, weights=args.weights, step=args.step)
    try:
        held, _ = read_evaluation(folder)
    except InputError:  # it is broken
        return False
    asked = {"options": options.as_json(), "step": model.step, "weights": model.weights}
    return all(held.get(name) == value for name, value in asked.items())


def read(argv: list[str]) -> tuple[Namespace, Options]:
    """The arguments, checked: those of the command, and what is to be measured."""
    usage = "adance evaluate RUN [options]"  # in this order: an option with several values would include the run
    parser = make_parser("evaluate", "Evaluate a run: samples, outlier detection, likelihood.", usage)
    parser.option("run", type=str, help=RUN_HELP)
    helps = descriptions(Options)
    for item in parameters(Options).values():
        form: dict[str, Any] = {"type": item.hint, "default": item.default}
        if isinstance(item.default, tuple):
            form = {"type": str, "nargs": "+", "default": []}
        elif isinstance(item.default, bool):
            form = {"action": "store_true"}
        parser.option(f"--{item.name}", help=helps[item.name], **form)
    add_run_options(parser)
    args = parser.read(argv)
    given: dict[str, Any] = {name: tuple(args[name]) if isinstance(args[name], list) else args[name] for name in helps}
    return args, Options(**given)


@contextmanager
def _progress(shown: bool) -> Iterator[Callable[[str], None]]:
    """Yield what to call with the name of each measurement: a bar shows it on a terminal, a log line elsewhere."""
    with progress_bar(shown, SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as bar:
        task = bar.add_task("")

        def measuring(what: str) -> None:
            bar.reset(task, description=f"measuring {what}")
            if shown and bar.disable:
                log.info(f"measuring {what}")

        yield measuring
