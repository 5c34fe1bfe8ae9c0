"""Energies of data, samples and noise."""

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.plot import energy_histogram
from adance.plot.axes import format_number
from adance.report.chart import Chart, as_chart, chart_axes
from adance.training.run import Run

N = 1000


def energies_of(run: Run, data: Dataset | None, samples: Tensor, seed: int = 0) -> dict[str, Tensor]:
    """The finite energies of up to 1,000 events of each kind, by its name."""
    events = {"samples": samples, "noise": run.sample(N, steps=0, seed=seed)}
    if data is not None:
        held_out, training = torch.arange(min(N, len(data.test))), torch.arange(min(N, len(data.train)))
        of_data = {"training data": data.batch(training), "held-out data": data.batch(held_out, "test")}
        events = of_data | events
    found = {name: run.score(x) for name, x in events.items()}
    return {name: values[values.isfinite()] for name, values in found.items() if values.isfinite().any()}


def energies_chart(energies: dict[str, Tensor]) -> tuple[Chart, dict[str, str]]:
    """The histogram, and the mean of each kind in words."""
    means = {name: format_number(float(values.mean())) for name, values in energies.items()}
    words = "Energies. " + " ".join(f"{name}: mean {mean}." for name, mean in means.items())
    return as_chart(energy_histogram(energies, ax=chart_axes(700)), words), means
