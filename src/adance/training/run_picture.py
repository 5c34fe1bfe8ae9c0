"""Samples of a run as files: pictures and arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from adance.data.dataset import Dataset
from adance.energies.conditional import needs_condition
from adance.training.run import Run

POINTS = 1000
"""Most rows of the data in a picture."""


def has_picture(data: dict[str, Any], energy: nn.Module) -> bool:
    """Whether samples can be drawn: images, and points in the plane if the energy needs no condition."""
    return data["kind"] == "image" or (list(data["event_shape"]) == [2] and not needs_condition(energy))


def save_picture(run: Run, samples: Tensor, path: Path) -> None:
    """Write a PNG of samples: a grid of images, or points in the plane with the density and, if available, the data."""
    if run.data["kind"] == "image":
        from adance import plot  # matplotlib takes time to import

        plot.save_grid(samples, path)
    else:
        save_density(run, samples, path, run.reload_data() if run.config.get("data") is not None else None)


def save_density(run: Run, samples: Tensor | None, path: Path, data: Dataset | None) -> None:
    """Write a PNG of the density in the plane, with up to 1,000 rows of the data and samples ``(N, 2)``, if given."""
    from adance import plot

    rows = None if data is None else data.batch(torch.arange(min(len(data.train), POINTS)))
    figure: Any = plot.density(run.score, rows, samples, temperature=run.sampler.temperature).figure
    figure.savefig(path, format="png", dpi=140)


def save_array(run: Run, samples: Tensor, path: Path) -> None:
    """Write samples as ``x`` of an ``.npz``: vectors in the units of the data, images clamped to [−1, 1]."""
    x = samples.clamp(-1, 1) if run.data["kind"] == "image" else run.transform.to_data(samples)
    with path.open("wb") as file:
        np.savez_compressed(file, x=x.cpu().numpy())
