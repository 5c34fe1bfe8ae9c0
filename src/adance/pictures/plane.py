"""A learned density in the plane, beside data and samples."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

RESOLUTION = 200


def save_plane(
    energy: Callable[[Tensor], Tensor], data: Tensor | None, samples: Tensor, path: Path, temperature: float = 1.0
) -> None:
    """Write a PNG of data ``(N, 2)`` if given, samples ``(M, 2)`` and ``exp(−E/T)`` normalized on the square."""
    from matplotlib.figure import Figure

    panels = ([] if data is None else [("data", data)]) + [("samples", samples), ("density", None)]
    shown = samples if data is None else data
    center = shown.mean(0)
    half = float(1.1 * (shown - center).abs().max())
    axis = torch.linspace(-half, half, RESOLUTION)
    grid = center + torch.cartesian_prod(axis, axis)
    with torch.no_grad():
        log_density = -energy(grid.to(shown)).float() / temperature
    density = torch.softmax(log_density, 0).view(RESOLUTION, RESOLUTION).T.cpu()
    x, y = center.tolist()
    extent = (x - half, x + half, y - half, y + half)

    figure = Figure(figsize=(4 * len(panels), 4), layout="compressed")
    for axes, (title, points) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        axes.set_title(title)
        if points is None:
            axes.imshow(density.numpy(), origin="lower", extent=extent)
        else:
            axes.plot(*points.cpu().T.numpy(), ".", markersize=2)
        axes.set(xlim=extent[:2], ylim=extent[2:], aspect="equal")
    figure.savefig(path, format="png", dpi=100)
