"""``adance evaluate``."""

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from jsonargparse import Namespace
from rich.console import Console

from adance.commands.open_run import open_run
from adance.commands.parser import make_parser
from adance.errors import InputError
from adance.evaluation.evaluate import evaluate_run
from adance.evaluation.options import Options
from adance.evaluation.tables import print_tables
from adance.training import load
from adance.training.files import whole_file

FILE = "evaluation.json"
IN_SWEEPS = "; or evaluate all: start the sweep again with --evaluate WORD, a word in the names of the measures to show"


def run(argv: list[str]) -> None:
    """Measure a run, print a table and write ``evaluation.json``."""
    args, options = read(argv)
    model = open_run(args, IN_SWEEPS)
    result = evaluate_run(model, options, say=_say(args.quiet))
    path = model.folder.path / FILE
    try:
        with whole_file(path) as aside:
            aside.write_text(json.dumps(result.as_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    print_tables(result, Console(width=None if sys.stdout.isatty() else 120))
    print(f"measurements: {path}")


def is_current(folder: Path, argv: list[str]) -> bool:
    """Whether the run's ``evaluation.json`` is of these arguments and of the checkpoint that they mean."""
    args, options = read([str(folder), *argv])
    model = load(folder, weights=args.weights, step=args.step)
    try:
        held = json.loads((folder / FILE).read_text())
    except (OSError, ValueError):
        return False
    asked = {"options": options.as_json(), "step": model.step, "weights": model.weights}
    return isinstance(held, dict) and all(held.get(name) == value for name, value in asked.items())


def read(argv: list[str]) -> tuple[Namespace, Options]:
    """The arguments, checked: those of the command, and what is to be measured."""
    defaults = Options()
    usage = "adance evaluate RUN [options]"  # in this order: an option with several values would take in the run
    parser = make_parser("evaluate", "Measure a run: samples, outlier detection, likelihood.", usage)
    parser.option("run", type=str, help="the run folder")
    parser.option("--n", type=int, default=defaults.n, help="number of samples, and of rows at most")
    parser.option(
        "--features",
        type=str | None,
        default=None,
        help="inception, classifier, pixels, or a TorchScript file; for images by default classifier, without labels "
        "pixels",
    )
    parser.option("--features_name", type=str | None, default=None, help="what to call the features of a file")
    parser.option(
        "--split", type=Literal["train", "test"], default=defaults.split, help="split that samples are compared with"
    )
    parser.option(
        "--samples", type=str, nargs="+", default=[], help="ways to draw, by how their names begin, such as default"
    )
    parser.option("--outliers", type=str, nargs="+", default=[], help="outlier sets: names or paths")
    parser.option("--chains", type=int, default=defaults.chains, help="annealed chains in each direction")
    parser.option(
        "--max_temperatures", type=int, default=defaults.max_temperatures, help="most temperatures of the annealing"
    )
    parser.option("--force", action="store_true", help="likelihood of a model that claims no density, too")
    parser.option("--seed", type=int, default=defaults.seed, help="seed of everything random")
    parser.option("--weights", type=Literal["average", "last"] | None, default=None, help="which weights")
    parser.option("--step", type=int | None, default=None, help="the checkpoint; by default the last")
    parser.option("--device", type=str, default="cpu", help="cpu or cuda")
    parser.option("--quiet", action="store_true", help="no progress")
    args = parser.read(argv)

    given: dict[str, Any] = {field.name: args[field.name] for field in dataclasses.fields(Options)}
    return args, Options(**{**given, "samples": tuple(args.samples), "outliers": tuple(args.outliers)})


def _say(quiet: bool) -> Callable[[str], None]:
    def say(what: str) -> None:
        if not quiet:
            print(f"measuring {what}", file=sys.stderr, flush=True)

    return say
