"""A learned density in the plane: where chains move over it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.report.chain import Film
from adance.report.images import alpha_uri
from adance.training.run import Run

RESOLUTION = 240
SIDE = 400
"""Side of the drawing, in its own units."""

ACCENT = (194, 84, 32)


@dataclass(frozen=True)
class Plane:
    """The density as a picture, and points in the drawing's units.

    Attributes:
        density: Data URI of the density.
        data: Data points ``(x, y)``; y grows downwards.
        frames: Points of the chains at each frame.
    """

    density: str
    data: list[tuple[float, float]]
    frames: list[list[float]]


def make_plane(run: Run, data: Dataset | None, film: Film) -> Plane:
    """The square that holds the data (or the last samples), the density on it, and the film's points."""
    shown = film.frames[-1] if data is None else data.batch(torch.arange(min(500, len(data.test))), "test")
    center = shown.mean(0)
    half = float(1.25 * (shown - center).abs().max())
    return Plane(
        alpha_uri(_density(run, center, half), ACCENT),
        [] if data is None else [(a, b) for a, b in _placed(shown, center, half).tolist()],
        [_placed(x, center, half).flatten().tolist() for x in film.frames],
    )


def _density(run: Run, center: Tensor, half: float) -> Tensor:
    """``exp(−E/T)`` over its greatest value, ``(H, W)`` with the first row on top; square-rooted, to show tails."""
    axis = torch.linspace(-half, half, RESOLUTION)
    grid = center + torch.cartesian_prod(axis, axis)
    log_density = -run.score(grid) / run.sampler.temperature
    density = (log_density - log_density.max()).exp().sqrt()
    return density.view(RESOLUTION, RESOLUTION).T.flip(0)


def _placed(x: Tensor, center: Tensor, half: float) -> Tensor:
    unit = (x - center) / half
    return torch.stack([(unit[:, 0] + 1) / 2 * SIDE, (1 - unit[:, 1]) / 2 * SIDE], 1).mul(10).round().div(10)
