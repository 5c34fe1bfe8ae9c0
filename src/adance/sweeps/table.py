"""The table of a sweep: means and standard deviations, one row for each combination, over its seeds."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev

from adance.sweeps.axes import Values, short_keys
from adance.sweeps.job import Outcome

SEEDS = ("seed", "data_seed")
TRAINING_METRICS = (
    "sample_distance",
    "loss",
    "energy_data",
    "energy_noise",
    "gradient_norm",
    "auc",
    "energy_gradients",
)
MAX_EVALUATION_COLUMNS = 4


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but their seeds.

    Attributes:
        values: The varied settings other than seeds, and their values for this group.
        outcomes: Its runs.
    """

    values: Values
    outcomes: list[Outcome]

    @cached_property
    def numbers(self) -> dict[str, tuple[float, float, int]]:
        """For each metric: mean and standard deviation over the finished runs, and their number."""
        found: dict[str, list[float]] = {}
        for outcome in self.outcomes:
            for name, value in {**outcome.metrics, **outcome.evaluation}.items():
                if outcome.status == "done" and isinstance(value, (int, float)) and math.isfinite(value):
                    found.setdefault(name, []).append(float(value))
        return {name: (fmean(v), stdev(v) if len(v) > 1 else 0.0, len(v)) for name, v in found.items()}

    @property
    def done(self) -> int:
        """The number of its runs that are done."""
        return sum(outcome.status == "done" for outcome in self.outcomes)

    @property
    def title(self) -> str:
        """The varied settings and their values, in words."""
        short = short_keys(list(self.values))
        return ", ".join(f"{short[key]} {value}" for key, value in self.values.items()) or "all"


def summarize(outcomes: Sequence[Outcome]) -> list[Group]:
    """The groups of a sweep, in order."""
    groups: dict[tuple[str, ...], Group] = {}
    for outcome in outcomes:
        values = {key: value for key, value in outcome.values.items() if key not in SEEDS}
        groups.setdefault(tuple(values.values()), Group(values, [])).outcomes.append(outcome)
    return list(groups.values())


def columns(groups: Sequence[Group], words: Sequence[str] = ()) -> list[str]:
    """Names of the metrics that a table shows: those of evaluations, then those of training.

    Args:
        groups: The groups.
        words: For each word, show the first evaluation metric whose name contains it (see :func:`matching`). By
            default show the first 4 evaluation metrics.
    """
    available = {name for group in groups for name in group.numbers}
    outcomes = [outcome for group in groups for outcome in group.outcomes]
    evaluated = list(dict.fromkeys(name for outcome in outcomes for name in outcome.evaluation))
    chosen = dict.fromkeys(matching(word, evaluated) for word in words) if words else evaluated[:MAX_EVALUATION_COLUMNS]
    return [name for name in (*chosen, *TRAINING_METRICS) if name in available]


def matching(word: str, names: Iterable[str]) -> str:
    """The first name that contains the word, comparing only letters and digits; empty if none does."""
    return next((name for name in names if _plain(word) in _plain(name)), "")


def as_cells(groups: Sequence[Group], words: Sequence[str] = ()) -> list[list[str]]:
    """A table of means and standard deviations: its head, and a row for each group."""
    names = columns(groups, words)
    head = [*short_keys(list(groups[0].values)).values(), "runs", *(name.replace("_", " ") for name in names)]
    return [head, *([*g.values.values(), _runs(g), *(_cell(g, name) for name in names)] for g in groups)]


def as_markdown(groups: Sequence[Group], words: Sequence[str] = ()) -> str:
    """The table in aligned Markdown."""
    head, *rows = as_cells(groups, words)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * (width - 1) + ":" if width > 1 else ":" for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) + " |" for line in lines
    )


def _runs(group: Group) -> str:
    """The number of runs done, and of all runs if not all are done."""
    return str(group.done) if group.done == len(group.outcomes) else f"{group.done} of {len(group.outcomes)}"


def _cell(group: Group, name: str) -> str:
    """A mean to three digits, with its standard deviation and number of runs where these say something."""
    if name not in group.numbers:
        return "–"
    mean, spread, n = group.numbers[name]
    return _digits(mean) + f" ± {_digits(spread, 2)}" * (n > 1) + f" ({n} of {group.done})" * (n < group.done)


def _digits(value: float, figures: int = 3) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.{figures}g}"


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name).casefold()
    return "".join(letter for letter in letters if letter.isalnum())
