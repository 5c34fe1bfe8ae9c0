"""Measurements as tables on a terminal."""

from typing import Any

from rich.console import Console
from rich.table import Table

from adance.evaluation.evaluate import Evaluation
from adance.evaluation.measurement import Measurement

ARROWS = {"lower": " ↓", "higher": " ↑", None: ""}
SAMPLES_CAPTION = (
    "↓ lower is better, ↑ higher; the last row is the score that real data get in place of samples: the floor. Squared "
    "and kernel distances are unbiased: near 0 for equal distributions, and sometimes negative."
)
OTHERS_CAPTION = "↓ lower is better, ↑ higher, ≈½ near 0.5; an AUROC of 1 is perfect, 0.5 is chance"


def print_tables(result: Evaluation, console: Console) -> None:
    """A table of the samples, one of all other measurements, and the warnings."""
    about = result.about
    console.print(f"{about['run']}: step {about['step']}, {about['weights']} weights, {result.seconds:.0f} s")
    samples = [m for m in result.measurements if m.group == "samples"]
    others = [m for m in result.measurements if m.group != "samples"]
    for rows, make_table in ((samples, _samples_table), (others, _list_table)):
        if rows:
            console.print(make_table(rows))
    for warning in result.warnings:
        console.print(f"! {warning}", markup=False, highlight=False)


def _samples_table(measurements: list[Measurement]) -> Table:
    """A row for each set of samples, a column for each metric."""
    columns = {m.metric: m for m in measurements}
    caption = f"{_caption(measurements)}\n{SAMPLES_CAPTION}"
    table = _table("Samples", caption, "samples", "chain", "n")
    for metric, m in columns.items():
        words = (_short(m) + _arrow(m)).split()
        width = max(map(len, [*words, *(_value(other) for other in measurements if other.metric == metric)]))
        table.add_column(" ".join(words), justify="right", max_width=width)
    for samples in dict.fromkeys(m.samples for m in measurements):
        row = {m.metric: m for m in measurements if m.samples == samples}
        first = next(iter(row.values()))
        values = (_value(row[metric]) if metric in row else "" for metric in columns)
        chain = "" if first.chain_length is None else str(first.chain_length)
        table.add_row(str(samples).removesuffix(" instead of samples"), chain, str(first.n), *values)
    return table


def _caption(measurements: list[Measurement]) -> str:
    """What all columns share: features, reference and seed."""
    extractors = ", ".join(dict.fromkeys(m.extractor for m in measurements if m.extractor))
    against = max(m.n_reference or 0 for m in measurements)
    of = next((str(m.split) for m in measurements if m.n_reference), "given")
    features = f"{extractors} features, " if extractors else ""
    return f"{features}against {against} rows of the {of} split, seed {measurements[0].seed}"


def _list_table(measurements: list[Measurement]) -> Table:
    """A row for each measurement."""
    columns = ("metric", "value", "chain", "n", "against", "seed")
    table = _table("Outlier detection and likelihood", OTHERS_CAPTION, *columns)
    for m in measurements:
        against = " ".join(str(part) for part in (m.n_reference, m.split) if part is not None)
        cells = ("" if part is None else str(part) for part in (m.chain_length, m.n, against, m.seed))
        table.add_row(m.name + _arrow(m), _value(m), *cells)
    return table


def _table(title: str, caption: str, first: str, *columns: str) -> Table:
    """An empty table, narrow enough for the default metrics of vectors in 80 columns."""
    look: Any = {"show_edge": False, "pad_edge": False, "collapse_padding": True}
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left", **look)
    table.add_column(first, overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _arrow(m: Measurement) -> str:
    """Which direction is better."""
    return " ≈½" if m.metric == "auroc" and m.better is None else ARROWS[m.better]


def _value(m: Measurement) -> str:
    spread = "" if m.spread is None else f" ± {m.spread:.2g}"
    return f"{m.value:.4g}{spread}"


def _short(m: Measurement) -> str:
    """A name that fits above a column: up to the first comma or parenthesis."""
    return m.name.partition(" (")[0].partition(",")[0]
