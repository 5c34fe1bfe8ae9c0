"""What the page of a run shows."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adance.data.dataset import Dataset
from adance.errors import InputError
from adance.report import facts
from adance.report.chain import Film, record_chain, still_frames
from adance.report.curves import run_curves
from adance.report.energies import energies_of, histogram
from adance.report.images import file_uri, grid_uri, saved_grid_uri
from adance.report.plane import SIDE, make_plane
from adance.report.scale import number
from adance.sweeps.job import read_evaluation
from adance.training.run import Run, load

CHAINS, MOST_GRIDS = 256, 12
FRAME_SIDE, GRID_SIDE = 480, 480


def run_context(folder: Path, *, seed: int = 0, device: str = "cpu") -> dict[str, Any]:
    """Everything that ``run.html`` needs.

    Raises:
        InputError: The folder holds no run.
    """
    run = load(folder, device=device)
    config, rows = run.folder.read_config(), run.folder.read_metrics()
    data = _data(run)
    shown = _shown_chains(run)
    film = record_chain(run, max(shown, CHAINS) if math.prod(run.event_shape) <= 1024 else shown, shown, seed)
    return {
        "name": facts.data_name(config),
        "objective": facts.class_name(config["objective"]),
        "subtitle": facts.subtitle(config, run.step, rows[-1].get("seconds") if rows else None, run.averaged),
        "kind": _kind(run),
        "chain": _chain(run, data, film, seed),
        "grids": _grids(run),
        "curves": run_curves(rows),
        "energies": histogram(energies_of(run, data, film.samples, seed)),
        "evaluation": facts.evaluation(*read_evaluation(folder), run.step),
        "settings": facts.settings(config),
        "config": facts.as_yaml(config),
        "folder": folder.absolute().name,
    }


def evenly(paths: Sequence[Path], most: int) -> list[Path]:
    """At most ``most`` of ``paths``, the first and the last among them."""
    if len(paths) <= most:
        return list(paths)
    return [paths[round(i * (len(paths) - 1) / (most - 1))] for i in range(most)]


def sample_pictures(folder: Path) -> list[Path]:
    """The pictures that training drew, in order of their steps."""
    return sorted(path for path in (folder / "samples").glob("*.png") if path.stem.isdigit())


def _kind(run: Run) -> str:
    if run.data["kind"] == "image":
        return "image"
    return "plane" if run.event_shape == (2,) else "vector"


def _shown_chains(run: Run) -> int:
    if run.data["kind"] != "image":
        return 300
    side = max(run.event_shape[1:])
    return 36 if side <= 16 else 25 if side <= 32 else 16


def _data(run: Run) -> Dataset | None:
    try:
        return run.reload_data()
    except InputError:
        return None


def _chain(run: Run, data: Dataset | None, film: Film, seed: int) -> dict[str, Any]:
    """The film for the page: pictures or points, and what to say at each step."""
    kind, stills = _kind(run), still_frames(film)
    made: dict[str, Any] = {
        "chains": len(film.frames[0]),
        "kernel": type(run.sampler).__name__,
        "seed": seed,
        "stills": stills,
        "steps": film.steps,
        "lost": film.length > film.steps[-1],
        "labels": [f"step {s} of {film.length}" for s in film.steps],
        "energies": [number(energy) for energy in film.energies],
        "trace": _trace(film),
    }
    if kind == "image":
        made["pictures"] = [grid_uri(frame, FRAME_SIDE) for frame in film.frames]
    if kind == "plane":
        plane = make_plane(run, data, film)
        made |= {"side": SIDE, "density": plane.density, "data": plane.data, "points": plane.frames}
    return made


def _trace(film: Film) -> dict[str, Any]:
    """The mean energy along the chain as a small line, 300 by 60, with a dot that moves."""
    low, high = min(film.energies), max(film.energies)
    span, last = (high - low) or 1.0, film.steps[-1] or 1
    dots = [
        (round(4 + 292 * s / last, 1), round(54 - 48 * (e - low) / span, 1))
        for s, e in zip(film.steps, film.energies, strict=True)
    ]
    return {"path": "M" + "L".join(f"{x} {y}" for x, y in dots), "dots": dots}


def picture_uri(path: Path, event: Sequence[int], side: int) -> str:
    """A picture that training drew, as a data URI.

    Raises:
        InputError: The file is broken.
    """
    try:
        return saved_grid_uri(path, event, side) if len(event) == 3 else file_uri(path, 2 * side)
    except OSError:
        raise InputError(f"{path} is no whole picture; delete it to do without") from None


def _grids(run: Run) -> list[dict[str, str]]:
    pictures = evenly(sample_pictures(run.folder.path), MOST_GRIDS)
    return [{"uri": picture_uri(path, run.event_shape, GRID_SIDE), "step": f"{int(path.stem):,}"} for path in pictures]
