"""Which curves of training a report shows, and what they say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from adance.report.chart import Series, legend, line_chart

Rows = Sequence[dict[str, float]]

DATA, NOISE, HELD_OUT = "var(--accent)", "var(--muted)", "var(--accent)"


class Curve(NamedTuple):
    """A chart with its title and what it means."""

    title: str
    note: str
    chart: Markup
    legend: Markup


@dataclass(frozen=True)
class Wanted:
    """A chart to draw: its lines are (name, metric, colour, dashed)."""

    title: str
    note: str
    lines: tuple[tuple[str, str, str, bool], ...]


CURVES = (
    Wanted("Loss", "The contrast of data and noise.", (("loss", "loss", DATA, False),)),
    Wanted(
        "Energies",
        "Held-out data should stay with training data; a gap is overfitting.",
        (
            ("data", "energy_data", DATA, False),
            ("held out", "energy_held_out", HELD_OUT, True),
            ("noise", "energy_noise", NOISE, False),
        ),
    ),
    Wanted(
        "Gradient norm v",
        "Mean ‖∇E‖ along the chains. Steady is well; growth without end comes before divergence.",
        (("v", "gradient_norm", DATA, False),),
    ),
    Wanted(
        "Log-ratio r",
        "How far the model has moved from its snapshot, in units of the ratio's temperature.",
        (("data", "ratio_data", DATA, False), ("noise", "ratio_noise", NOISE, False)),
    ),
    Wanted(
        "AUC",
        "How often a datum has less energy than a noise sample. At ½ they cannot be told apart.",
        (("AUC", "auc", DATA, False),),
    ),
    Wanted(
        "Effective sample share",
        "How much of the snapshot's noise still counts under the present model.",
        (("share", "effective_sample_share", DATA, False),),
    ),
    Wanted("Log Z", "The learned normaliser.", (("log Z", "log_z", DATA, False),)),
)

COMPARED = ("Loss", "Gradient norm v", "AUC", "Effective sample share")


def run_curves(rows: Rows) -> list[Curve]:
    """The curves of one run, those that it has."""
    found = []
    for wanted in CURVES:
        series = [Series(name, _points(rows, key), color, dashed) for name, key, color, dashed in wanted.lines]
        found.append(_curve(wanted, [s for s in series if len(s.points) > 1]))
    return [curve for curve in found if curve.chart]


def compared_curves(runs: Sequence[tuple[str, str, Rows]]) -> tuple[list[Curve], Markup]:
    """The curves of several runs in the same charts, and the legend of all.

    Args:
        runs: Name, colour and rows of each; those of one group share the first two.
    """
    found = []
    for wanted in CURVES:
        if wanted.title in COMPARED:
            series = [Series(name, _points(rows, wanted.lines[0][1]), color) for name, color, rows in runs]
            found.append(_curve(wanted, [s for s in series if len(s.points) > 1])._replace(legend=Markup("")))
    names = {name: Series(name, [], color) for name, color, _ in runs}
    return [curve for curve in found if curve.chart], legend(list(names.values()))


def _curve(wanted: Wanted, series: Sequence[Series]) -> Curve:
    once = list({s.name: s for s in series}.values())
    return Curve(wanted.title, wanted.note, line_chart(wanted.title, series), legend(once))


def _points(rows: Rows, key: str) -> list[tuple[float, float]]:
    return [(row["step"], row[key]) for row in rows if isinstance(row.get(key), (int, float))]
