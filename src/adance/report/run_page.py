"""What the page of a run shows."""

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.errors import InputError
from adance.plot.axes import COLORS, format_number
from adance.plot.plane import Window, density_image, window_of
from adance.report import summary
from adance.report.chain import ChainRecording, energies_of, record_chain, still_frames
from adance.report.charts import energies_chart, run_curves
from adance.report.images import alpha_uri, grid_uri, saved_uri
from adance.training.doctor import diagnose
from adance.training.evaluation_file import read_evaluation
from adance.training.loading import load
from adance.training.run import Run
from adance.yaml_text import dump

CHAINS, MAX_GRIDS, MAX_DATA = 256, 12, 500
GRID_SIDE, PLANE_SIDE = 480, 400
"""Sides of pictures in pixels, and of the plane in units of its drawing."""


def run_context(folder: Path, *, seed: int = 0, device: str = "cpu") -> dict[str, Any]:
    """Everything that ``run.html`` needs.

    Raises:
        InputError: The folder holds no run.
    """
    run = load(folder, device=device)
    config, rows = run.folder.read_config(), run.folder.read_metrics()
    data: Dataset | None = None
    with suppress(InputError):
        data = run.reload_data()
    side = max(run.event_shape)
    shown = 300 if _kind(run) != "image" else 36 if side <= 16 else 25 if side <= 32 else 16
    recording = record_chain(run, max(shown, CHAINS) if math.prod(run.event_shape) <= 1024 else shown, shown, seed)
    energies = energies_of(run, data, recording.samples, seed)
    return {
        "name": summary.data_name(config),
        "objective": summary.class_name(config["objective"]),
        "subtitle": summary.subtitle(config, run.step, rows[-1].get("seconds") if rows else None, run.averaged),
        "kind": _kind(run),
        "chain": _chain(run, data, recording),
        "grids": [(saved_uri(path, GRID_SIDE), f"{int(path.stem):,}") for path in _evenly(run)],
        "findings": diagnose(rows, config).findings,
        "curves": run_curves(rows),
        "energies": energies_chart(energies),
        "means": {name: format_number(float(values.mean())) for name, values in energies.items()},
        "evaluation": summary.evaluation(*read_evaluation(folder), run.step),
        "settings": summary.settings(config),
        "config": dump(config),
        "folder": folder.absolute().name,
    }


def sample_pictures(folder: Path) -> list[Path]:
    """The pictures of samples that training saved, in order of their steps."""
    return sorted(path for path in (folder / "samples").glob("*.png") if path.stem.isdecimal())


def _evenly(run: Run) -> list[Path]:
    """At most 12 pictures, including the first and the last."""
    paths = sample_pictures(run.folder.path)
    n = min(len(paths), MAX_GRIDS)
    return [paths[int(i)] for i in torch.linspace(0, len(paths) - 1, n).round()]


def _kind(run: Run) -> str:
    if run.data["kind"] == "image":
        return "image"
    return "plane" if run.event_shape == (2,) else "vector"


def _chain(run: Run, data: Dataset | None, recording: ChainRecording) -> dict[str, Any]:
    """The recording for the page: pictures or points, and what to say at each step."""
    steps, energies = recording.steps, recording.energies
    low, span = min(energies), (max(energies) - min(energies)) or 1.0
    x, y = [4 + 292 * s / (steps[-1] or 1) for s in steps], [54 - 48 * (e - low) / span for e in energies]
    made: dict[str, Any] = {
        "chains": len(recording.frames[0]),
        "kernel": type(run.sampler).__name__,
        "stills": still_frames(recording),
        "steps": steps,
        "lost": recording.length > steps[-1],
        "labels": [f"step {s} of {recording.length}" for s in steps],
        "energies": [format_number(energy) for energy in energies],
        "dots": [(round(a, 1), round(b, 1)) for a, b in zip(x, y, strict=True)],
    }
    if _kind(run) == "image":
        made["pictures"] = [grid_uri(frame, GRID_SIDE) for frame in recording.frames]
    if _kind(run) == "plane":
        points = None if data is None else data.batch(torch.arange(min(MAX_DATA, len(data.test))), "test")
        window = window_of(recording.frames[-1] if points is None else points)
        density = density_image(run.score, window, run.sampler.temperature)
        made |= {"side": PLANE_SIDE, "density": alpha_uri(density, COLORS["accent"])}
        made["data"] = [] if points is None else _placed(points, window).tolist()
        made["points"] = [_placed(frame, window).flatten().tolist() for frame in recording.frames]
    return made


def _placed(x: Tensor, window: Window) -> Tensor:
    """Points in units of the plane's drawing, where y grows downwards."""
    unit = (x.cpu().double() - torch.tensor(window[:2])) / window[2] * torch.tensor([1.0, -1.0])
    return ((unit + 1) * PLANE_SIDE / 2).round(decimals=1)
