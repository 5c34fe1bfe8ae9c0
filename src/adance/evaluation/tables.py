"""Figures as tables on a terminal."""

from rich.console import Console
from rich.table import Table

from adance.evaluation.evaluate import Evaluation
from adance.evaluation.figures import Figure

ARROWS = {"lower": " ↓", "higher": " ↑", None: ""}


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
    table = Table(title="Samples", title_justify="left", caption=_caption(figures), caption_justify="left")
    table.add_column("of", overflow="fold")
    for name in ("chain", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for figure in measures.values():
        table.add_column(_short(figure) + ARROWS[figure.better], justify="right")
    for samples in dict.fromkeys(figure.samples for figure in figures):
        row = {figure.measure: figure for figure in figures if figure.samples == samples}
        first = next(iter(row.values()))
        values = (_value(row[measure]) if measure in row else "" for measure in measures)
        chain = "" if first.chain_length is None else str(first.chain_length)
        table.add_row(samples, chain, str(first.n), *values)
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
    table = Table(title="Outlier detection and likelihood", title_justify="left")
    table.add_column("measure", overflow="fold")
    for name in ("value", "chain", "n", "against", "seed"):
        table.add_column(name, justify="right", no_wrap=True)
    for figure in figures:
        against = " ".join(str(part) for part in (figure.n_reference, figure.split) if part is not None)
        cells = ("" if part is None else str(part) for part in (figure.chain_length, figure.n))
        seed = "" if figure.seed is None else str(figure.seed)
        table.add_row(figure.name + ARROWS[figure.better], _value(figure), *cells, against, seed)
    return table


def _value(figure: Figure) -> str:
    spread = "" if figure.spread is None else f" ± {figure.spread:.2g}"
    return f"{figure.value:.4g}{spread}"


def _short(figure: Figure) -> str:
    """A name that fits above a column: up to the first comma or bracket."""
    return figure.name.partition(" (")[0].partition(",")[0]
