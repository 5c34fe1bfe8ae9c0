"""Pictures of what a classifier sees in samples: p(y | x) of single ones, and p(y) of all (thesis Figures 5.1, 5.2)."""

from pathlib import Path

import torch
from torch import Tensor

from adance.atomic import atomic_write
from adance.data.dataset import Dataset
from adance.errors import InputError
from adance.evaluation.classifier import Classifier
from adance.evaluation.extractor import Extractor, classify
from adance.evaluation.reference import as_events

SHOWN = 4
GIVEN_X, MARGINAL = "class_given_x.png", "class_marginal.png"
COLOUR, REAL = "#0072b2", "#d55e00"


def save_class_pictures(data: Dataset, extractor: Extractor, x: Tensor, n: int, folder: Path) -> list[str]:
    """Both pictures of samples ``x`` beside ``n`` real images at most, into ``folder``.

    Returns:
        Names of the files; none for vectors, and where the extractor has no classes.

    Raises:
        InputError: They cannot be written.
    """
    seen = classify(extractor, x)
    if seen is None or data.kind != "image":
        return []
    rows = torch.arange(min(n, len(data.train)))
    real = classify(extractor, as_events(data.batch(rows), data.kind))
    assert real is not None
    classes = extractor.classes if isinstance(extractor, Classifier) else range(seen.shape[1])
    names = [str(label) for label in classes]
    try:
        save_class_given_x(x, seen, names, folder / GIVEN_X)
        save_class_marginal(seen, real, names, folder / MARGINAL)
    except OSError as error:
        raise InputError(f"cannot write pictures to {folder}: {error.strerror}") from None
    return [GIVEN_X, MARGINAL]


def save_class_given_x(images: Tensor, log_probabilities: Tensor, names: list[str], path: Path) -> None:
    """Beside each of the first four images ``(n, C, H, W)`` in [−1, 1], the bars of its p(y | x) ``(n, classes)``."""
    from matplotlib.figure import Figure

    shown = min(SHOWN, len(images))
    figure = Figure(figsize=(7, 1.7 * shown), layout="constrained")
    panels = figure.subplots(shown, 2, squeeze=False, width_ratios=(1, 3))
    for (left, right), image, row in zip(panels, images, log_probabilities.exp(), strict=False):
        pixels = (image.clamp(-1, 1).permute(1, 2, 0) + 1) / 2
        left.imshow(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels, cmap="gray", vmin=0, vmax=1)
        left.set_axis_off()
        right.bar(range(len(row)), row, color=COLOUR)
        right.set(ylim=(0, 1), ylabel="p(y | x)")
        _name_classes(right, names)
    panels[-1][1].set_xlabel("class y")
    _save(figure, path)


def save_class_marginal(samples: Tensor, real: Tensor, names: list[str], path: Path) -> None:
    """The bars of p(y), the mean of p(y | x) over samples and over real data, from log p(y | x) ``(n, classes)``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    places = torch.arange(samples.shape[1])
    for shift, rows, colour, label in ((-0.2, samples, COLOUR, "samples"), (0.2, real, REAL, "real data")):
        axes.bar(places + shift, rows.exp().mean(0), width=0.4, color=colour, label=label)
    axes.set(xlabel="class y", ylabel="p(y)")
    axes.margins(y=0.2)
    axes.legend(frameon=False, ncols=2, loc="upper right")
    _name_classes(axes, names)
    _save(figure, path)


def _name_classes(axes: object, names: list[str]) -> None:
    if len(names) <= 30:
        axes.set_xticks(range(len(names)), names)  # type: ignore[attr-defined]


def _save(figure: object, path: Path) -> None:
    with atomic_write(path) as aside:
        figure.savefig(aside, format="png", dpi=120)  # type: ignore[attr-defined]
