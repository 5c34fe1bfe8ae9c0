"""Samples of a run as files: pictures and arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from adance.data.dataset import Dataset
from adance.energies.conditional import needs_condition
from adance.training.run import Run


def has_picture(data: dict[str, Any], energy: nn.Module) -> bool:
    """Whether samples can be drawn: images, and points in the plane if the energy needs no condition."""
    return data["kind"] == "image" or (list(data["event_shape"]) == [2] and not needs_condition(energy))


def save_picture(run: Run, samples: Tensor, path: Path, data: Dataset | None = None) -> None:
    """Write a PNG of samples: a grid of images, or points in the plane with the density and, if available, the data."""
    from adance import plot  # matplotlib takes time to import

    if run.data["kind"] == "image":
        plot.save_grid(samples, path)
    else:
        if data is None and run.folder.read_config().get("data") is not None:
            data = run.reload_data()
        rows = None if data is None else data.batch(torch.arange(min(len(data.train), len(samples))))
        figure: Any = plot.density(run.score, rows, samples, temperature=run.sampler.temperature).figure
        figure.savefig(path, format="png", dpi=140)


def save_array(run: Run, samples: Tensor, path: Path) -> None:
    """Write samples as ``x`` of an ``.npz``: vectors in the units of the data, images clamped to [−1, 1]."""
    x = samples.clamp(-1, 1) if run.data["kind"] == "image" else run.transform.to_data(samples)
    with path.open("wb") as file:
        np.savez_compressed(file, x=x.cpu().numpy())
