"""Pictures of what a classifier sees in samples: p(y | x) of single ones, and p(y) of all (thesis Figures 5.1, 5.2)."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adance.atomic import output_file
from adance.evaluation.classifier import Classifier
from adance.evaluation.extractor import classify
from adance.evaluation.reference import as_events
from adance.evaluation.sample_set import SampleSet

IMAGES = 4
CLASS_GIVEN_X, CLASS_MARGINAL = "class_given_x.png", "class_marginal.png"
BLUE, ORANGE = "#0072b2", "#d55e00"
MAX_NAMES = 30


def save_class_pictures(samples: SampleSet, folder: Path) -> list[str]:
    """Save both pictures, of samples and of up to as many real images, to ``folder``.

    Returns:
        Names of the files; none for vectors, or if there is no extractor with classes.

    Raises:
        InputError: They cannot be written.
    """
    data, extractor, log_p = samples.data, samples.extractor, samples.log_probabilities
    if data.kind != "image" or extractor is None or log_p is None:
        return []
    rows = torch.arange(min(len(log_p), len(data.train)))
    real = classify(extractor, as_events(data.batch(rows), data.kind))
    assert real is not None
    names = extractor.classes if isinstance(extractor, Classifier) else range(log_p.shape[1])
    ticks = {"xticks": range(len(names)), "xticklabels": list(map(str, names))} if len(names) <= MAX_NAMES else {}
    pictures = {
        CLASS_GIVEN_X: class_given_x(samples.x, log_p, ticks),
        CLASS_MARGINAL: class_marginal(log_p, real, ticks),
    }
    for name, figure in pictures.items():
        with output_file(folder / name) as part:
            figure.savefig(part, format="png", dpi=120)
    return list(pictures)


def class_given_x(images: Tensor, log_probabilities: Tensor, ticks: dict[str, Any]) -> Any:
    """Draw the first four images ``(n, C, H, W)`` in [−1, 1], each with the bars of its p(y | x) ``(n, classes)``."""
    from matplotlib.figure import Figure

    rows = min(IMAGES, len(images))
    figure = Figure(figsize=(7, 1.7 * rows), layout="constrained")
    panels = figure.subplots(rows, 2, squeeze=False, width_ratios=(1, 3))
    for (left, right), image, p in zip(panels, images, log_probabilities.exp(), strict=False):
        pixels = (image.clamp(-1, 1).permute(1, 2, 0) + 1) / 2
        left.imshow(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels, cmap="gray", vmin=0, vmax=1)
        left.set_axis_off()
        right.bar(range(len(p)), p, color=BLUE)
        right.set(ylim=(0, 1), ylabel="p(y | x)", **ticks)
    panels[-1][1].set_xlabel("class y")
    return figure


def class_marginal(samples: Tensor, real: Tensor, ticks: dict[str, Any]) -> Any:
    """Draw the bars of p(y), the mean of p(y | x), of samples and of real data, from log p(y | x) ``(n, classes)``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    positions = torch.arange(samples.shape[1])
    for shift, rows, color, label in ((-0.2, samples, BLUE, "samples"), (0.2, real, ORANGE, "real data")):
        axes.bar(positions + shift, rows.exp().mean(0), width=0.4, color=color, label=label)
    axes.set(xlabel="class y", ylabel="p(y)", **ticks)
    axes.margins(y=0.2)
    axes.legend(frameon=False, ncols=2, loc="upper right")
    return figure
