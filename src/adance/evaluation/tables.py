"""Figures as tables on a terminal."""

from typing import Any

from rich.console import Console
from rich.table import Table

from adance.evaluation.evaluate import Evaluation
from adance.evaluation.measurement import Measurement

ARROWS = {"lower": " ↓", "higher": " ↑", None: ""}
LOOK: dict[str, Any] = {
    "title_justify": "left",
    "caption_justify": "left",
    "show_edge": False,
    "pad_edge": False,
    "collapse_padding": True,
}
"""Narrow enough for the usual measures of vectors in 80 columns."""
READ_SAMPLES = (
    "↓ lower is better, ↑ higher; the last row is of real rows in place of samples. Squared and kernel distances are "
    "unbiased: around 0 for equal laws, and by chance below."
)
READ_OTHERS = "↓ lower is better, ↑ higher, ≈½ near 0.5; AUROC is 1 at best, and 0.5 where nothing is told apart"


def print_tables(result: Evaluation, console: Console) -> None:
    """A table of the samples, one of the other measurements, and what must be read with care."""
    about = result.about
    console.print(f"{about['run']}: step {about['step']}, {about['weights']} weights, {result.seconds:.0f} s")
    samples = [m for m in result.measurements if m.group == "samples"]
    if samples:
        console.print(_samples_table(samples))
    others = [m for m in result.measurements if m.group != "samples"]
    if others:
        console.print(_list_table(others))
    for warning in result.warnings:
        console.print(f"! {warning}", markup=False, highlight=False)


def _samples_table(measurements: list[Measurement]) -> Table:
    """A row for each set of samples, a column for each measure."""
    measures = {m.metric: m for m in measurements}
    caption = f"{_caption(measurements)}\n{READ_SAMPLES}"
    table = Table(title="Samples", caption=caption, **LOOK)
    table.add_column("of", overflow="fold")
    for name in ("chain", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for measure, m in measures.items():
        words = (_short(m) + _arrow(m)).split()
        width = max(map(len, [*words, *(_value(other) for other in measurements if other.metric == measure)]))
        table.add_column(" ".join(words), justify="right", max_width=width)
    for samples in dict.fromkeys(m.samples for m in measurements):
        row = {m.metric: m for m in measurements if m.samples == samples}
        first = next(iter(row.values()))
        values = (_value(row[measure]) if measure in row else "" for measure in measures)
        chain = "" if first.chain_length is None else str(first.chain_length)
        table.add_row(str(samples).removesuffix(" instead of samples"), chain, str(first.n), *values)
    return table


def _caption(measurements: list[Measurement]) -> str:
    """What the columns share: whose features, against what, and the seed."""
    extractors = ", ".join(dict.fromkeys(m.extractor for m in measurements if m.extractor))
    against = max(m.n_reference or 0 for m in measurements)
    of = next((str(m.split) for m in measurements if m.n_reference), "given")
    features = f"{extractors} features, " if extractors else ""
    return f"{features}against {against} rows of the {of} split, seed {measurements[0].seed}"


def _list_table(measurements: list[Measurement]) -> Table:
    """A row for each measurement."""
    table = Table(title="Outlier detection and likelihood", caption=READ_OTHERS, **LOOK)
    table.add_column("measure", overflow="fold")
    for name in ("value", "chain", "n", "against", "seed"):
        table.add_column(name, justify="right", no_wrap=True)
    for m in measurements:
        against = " ".join(str(part) for part in (m.n_reference, m.split) if part is not None)
        cells = ("" if part is None else str(part) for part in (m.chain_length, m.n))
        seed = "" if m.seed is None else str(m.seed)
        table.add_row(m.name + _arrow(m), _value(m), *cells, against, seed)
    return table


def _arrow(m: Measurement) -> str:
    """Which way is better."""
    return " ≈½" if m.metric == "auroc" and m.better is None else ARROWS[m.better]


def _value(m: Measurement) -> str:
    spread = "" if m.spread is None else f" ± {m.spread:.2g}"
    return f"{m.value:.4g}{spread}"


def _short(m: Measurement) -> str:
    """A name that fits above a column: up to the first comma or bracket."""
    return m.name.partition(" (")[0].partition(",")[0]
