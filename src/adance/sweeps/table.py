"""Means and spreads of a sweep: one row for each combination, over the seeds that it was run with."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from adance.sweeps.axes import Values, short_keys
from adance.sweeps.job import Outcome

SEEDS = ("seed", "data_seed")
SHOWN = ("loss", "energy_data", "energy_noise", "gradient_norm", "auc", "energy_gradients")
MAX_EVALUATED = 4


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but their seeds.

    Attributes:
        values: What is varied besides seeds, and its values here.
        outcomes: Its runs.
        numbers: Of every metric of the log and of the evaluation: mean and standard deviation over the finished runs,
            and how many they are.
    """

    values: Values
    outcomes: list[Outcome]
    numbers: dict[str, tuple[float, float, int]] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """How many of its runs are."""
        return sum(outcome.status == "done" for outcome in self.outcomes)

    @property
    def title(self) -> str:
        """What is varied, in words."""
        short = short_keys(list(self.values))
        return ", ".join(f"{short[key]} {value}" for key, value in self.values.items()) or "all"


def summarize(outcomes: Sequence[Outcome]) -> list[Group]:
    """The groups of a sweep, in order."""
    groups: dict[tuple[str, ...], Group] = {}
    for outcome in outcomes:
        values = {key: value for key, value in outcome.values.items() if key not in SEEDS}
        groups.setdefault(tuple(values.values()), Group(values, [])).outcomes.append(outcome)
    for group in groups.values():
        group.numbers.update(_numbers([found for found in group.outcomes if found.status == "done"]))
    return list(groups.values())


def columns(groups: Sequence[Group], words: Sequence[str] = ()) -> list[str]:
    """Names of the numbers that a table shows: metrics of the evaluation, then those of the log.

    Args:
        groups: The groups.
        words: For each the first metric of the evaluation whose name contains it; only letters and digits count. By
            default the first 4 metrics.
    """
    there = {name for group in groups for name in group.numbers}
    evaluated = list(
        dict.fromkeys(name for group in groups for outcome in group.outcomes for name in outcome.measurements)
    )
    found = [matching(word, evaluated) for word in words]
    wanted = list(dict.fromkeys(found))
    return [name for name in (*(wanted if words else evaluated[:MAX_EVALUATED]), *SHOWN) if name in there]


def matching(word: str, names: Iterable[str]) -> str:
    """The first name that has the word in it, of which only letters and digits count; empty if none has it."""
    return next((name for name in names if _plain(word) in _plain(name)), "")


def as_markdown(groups: Sequence[Group], words: Sequence[str] = ()) -> str:
    """A table of means and spreads, in Markdown, aligned for reading."""
    names = columns(groups, words)
    keys = list(groups[0].values)
    head = [*short_keys(keys).values(), "runs", *(name.replace("_", " ") for name in names)]
    rows = [
        [
            *group.values.values(),
            runs_text(group),
            *(cell_text(group, name) for name in names),
        ]
        for group in groups
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [head, ["-" * (width - 1) + ":" if width > 1 else ":" for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) + " |" for line in lines
    )


def runs_text(group: Group) -> str:
    """How many runs are done, and of how many where not all are."""
    return str(group.done) if group.done == len(group.outcomes) else f"{group.done} of {len(group.outcomes)}"


def cell_text(group: Group, name: str) -> str:
    """A mean, and of how many runs where not of all that are done."""
    if name not in group.numbers:
        return "–"
    mean, spread, n = group.numbers[name]
    return number_text(mean, spread, n) + f" ({n} of {group.done})" * (n < group.done)


def number_text(mean: float, spread: float, n: int) -> str:
    """A mean to three digits, with its standard deviation where there are several runs."""
    return _digits(mean) + (f" ± {_digits(spread, 2)}" if n > 1 else "")


def _digits(value: float, figures: int = 3) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.{figures}g}"


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name).casefold()
    return "".join(letter for letter in letters if letter.isalnum())


def _numbers(done: Sequence[Outcome]) -> dict[str, tuple[float, float, int]]:
    found: dict[str, list[float]] = {}
    for outcome in done:
        for name, value in {**outcome.metrics, **outcome.measurements}.items():
            if isinstance(value, (int, float)) and math.isfinite(value):
                found.setdefault(name, []).append(float(value))
    return {name: (fmean(v), stdev(v) if len(v) > 1 else 0.0, len(v)) for name, v in found.items()}
