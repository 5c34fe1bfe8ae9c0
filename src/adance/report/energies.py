"""Histograms of energies of data, samples and noise."""

from dataclasses import dataclass

import torch
from markupsafe import Markup
from torch import Tensor

from adance.data.dataset import Dataset
from adance.report.chart import BOTTOM, HEIGHT, TOP, Series, frame, legend, path, steps_of, x_axis
from adance.report.scale import Scale, number
from adance.training.run import Run

N, BINS = 1000, 110
WIDTH = 700
COLORS = {
    "training data": "var(--accent)",
    "held-out data": "var(--accent)",
    "samples": "var(--ink)",
    "noise": "var(--muted)",
}


@dataclass(frozen=True)
class Histogram:
    """A chart of densities of energies, and the means in words."""

    chart: Markup
    legend: Markup
    means: list[tuple[str, str]]


def energies_of(run: Run, data: Dataset | None, samples: Tensor, seed: int = 0) -> dict[str, Tensor]:
    """Energies of up to 1,000 events of each kind, by its name."""
    events = {"samples": samples, "noise": run.sample(N, steps=0, seed=seed)}
    if data is not None:
        for split, name in (("test", "held-out data"), ("train", "training data")):
            rows = data.test if split == "test" else data.train
            x = data.batch(torch.arange(min(N, len(rows))), split)  # type: ignore[arg-type]
            events = {name: x, **events}
    found = {name: run.score(x) for name, x in events.items()}
    return {name: values[values.isfinite()] for name, values in found.items() if values.isfinite().any()}


def histogram(energies: dict[str, Tensor]) -> Histogram:
    """All kinds over one axis, each with an area of 1."""
    low, high = _range(list(energies.values()))
    edges = torch.linspace(low, high, BINS + 1).tolist()
    heights = {name: _heights(values, low, high) for name, values in energies.items()}
    top = 1.08 * max(max(h) for h in heights.values())
    x = Scale(low, high, 8, WIDTH - 8)
    y = Scale(0.0, top, HEIGHT - BOTTOM, TOP)
    series = [Series(name, [], COLORS[name], name == "held-out data") for name in energies]
    areas = Markup("").join(
        Markup('<path class="{}" style="{}" d="{}"/>').format(
            "outline" if s.dashed else "area",
            f"stroke:{s.color};fill:{s.color}" + (";stroke-dasharray:5 4" if s.dashed else ""),
            path(steps_of(edges, heights[s.name]), x, y),
        )
        for s in series
    )
    means = [(name, number(float(values.mean()))) for name, values in energies.items()]
    words = "Energies. " + " ".join(f"{name}: mean {mean}." for name, mean in means)
    return Histogram(frame(words, x_axis(x, 8) + areas, WIDTH), legend(series), means)


def _range(values: list[Tensor]) -> tuple[float, float]:
    """A range that holds all but the farthest of each kind; a long tail would squeeze the rest."""
    low = min(float(v.quantile(0.002)) for v in values)
    high = max(float(v.quantile(0.98)) for v in values)
    if not high > low:
        return low - 1, high + 1
    room = 0.04 * (high - low)
    return low - room, high + room


def _heights(values: Tensor, low: float, high: float) -> list[float]:
    """Shares of all values in each bin; those outside the range are in none."""
    return [float(h) for h in torch.histc(values.float(), BINS, low, high) / len(values)]
