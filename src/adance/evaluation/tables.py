"""Figures as tables on a terminal."""

from typing import Any

from rich.console import Console
from rich.table import Table

from adance.evaluation.evaluate import Evaluation
from adance.evaluation.figures import Figure

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
    """A table of the samples, one of the other figures, and what must be read with care."""
    about = result.about
    console.print(f"{about['run']}: step {about['step']}, {about['weights']} weights, {result.seconds:.0f} s")
    samples = [figure for figure in result.figures if figure.group == "samples"]
    if samples:
        console.print(_samples_table(samples))
    others = [figure for figure in result.figures if figure.group != "samples"]
    if others:
        console.print(_list_table(others))
    for warning in result.warnings:
        console.print(f"! {warning}", markup=False, highlight=False)


def _samples_table(figures: list[Figure]) -> Table:
    """A row for each set of samples, a column for each measure."""
    measures = {figure.measure: figure for figure in figures}
    caption = f"{_caption(figures)}\n{READ_SAMPLES}"
    table = Table(title="Samples", caption=caption, **LOOK)
    table.add_column("of", overflow="fold")
    for name in ("chain", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for measure, figure in measures.items():
        words = (_short(figure) + _arrow(figure)).split()
        width = max(map(len, [*words, *(_value(other) for other in figures if other.measure == measure)]))
        table.add_column(" ".join(words), justify="right", max_width=width)
    for samples in dict.fromkeys(figure.samples for figure in figures):
        row = {figure.measure: figure for figure in figures if figure.samples == samples}
        first = next(iter(row.values()))
        values = (_value(row[measure]) if measure in row else "" for measure in measures)
        chain = "" if first.chain_length is None else str(first.chain_length)
        table.add_row(str(samples).removesuffix(" instead of samples"), chain, str(first.n), *values)
    return table


def _caption(figures: list[Figure]) -> str:
    """What the columns share: whose features, against what, and the seed."""
    extractors = ", ".join(dict.fromkeys(figure.extractor for figure in figures if figure.extractor))
    against = max(figure.n_reference or 0 for figure in figures)
    of = next((str(figure.split) for figure in figures if figure.n_reference), "given")
    features = f"{extractors} features, " if extractors else ""
    return f"{features}against {against} rows of the {of} split, seed {figures[0].seed}"


def _list_table(figures: list[Figure]) -> Table:
    """A row for each figure."""
    table = Table(title="Outlier detection and likelihood", caption=READ_OTHERS, **LOOK)
    table.add_column("measure", overflow="fold")
    for name in ("value", "chain", "n", "against", "seed"):
        table.add_column(name, justify="right", no_wrap=True)
    for figure in figures:
        against = " ".join(str(part) for part in (figure.n_reference, figure.split) if part is not None)
        cells = ("" if part is None else str(part) for part in (figure.chain_length, figure.n))
        seed = "" if figure.seed is None else str(figure.seed)
        table.add_row(figure.name + _arrow(figure), _value(figure), *cells, against, seed)
    return table


def _arrow(figure: Figure) -> str:
    """Which way is better."""
    return " ≈½" if figure.measure == "auroc" and figure.better is None else ARROWS[figure.better]


def _value(figure: Figure) -> str:
    spread = "" if figure.spread is None else f" ± {figure.spread:.2g}"
    return f"{figure.value:.4g}{spread}"


def _short(figure: Figure) -> str:
    """A name that fits above a column: up to the first comma or bracket."""
    return figure.name.partition(" (")[0].partition(",")[0]
