"""One run of a sweep: what to do, and its outcome."""

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path

from adance.atomic import atomic_write
from adance.errors import InputError
from adance.sweeps.axes import Values
from adance.training.evaluation_file import read_evaluation
from adance.training.run_folder import RunFolder

log = logging.getLogger("adance")

FINAL = ("done", "diverged")
"""Outcomes of runs that are not tried again: with the same seed the outcome would be the same."""


@dataclass(frozen=True)
class Job:
    """A run to train.

    Attributes:
        name: Name of the folder.
        values: The varied settings and their values for this run.
        folder: The run folder.
        config: All settings, as YAML.
        trusted: Modules and classes that the run can name (see :func:`adance.trust`).
    """

    name: str
    values: Values
    folder: Path
    config: str
    trusted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        name: Name of the folder.
        values: The varied settings and their values for this run.
        status: ``done``, ``diverged``, ``refused`` (bad input), ``failed``, ``interrupted``,
            ``unfinished`` or ``not run``.
        message: What went wrong.
        metrics: The last line of ``metrics.jsonl``.
        evaluation: Name and value of every metric in ``evaluation.json``.
    """

    name: str
    values: Values
    status: str
    message: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    evaluation: dict[str, float] = field(default_factory=dict)


def read_outcome(name: str, values: Values, folder: Path) -> Outcome:
    """The outcome of the run in ``folder``, from its files: ``unfinished`` or ``not run`` if it has not ended."""
    try:
        ending = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
        status, message = str(ending["status"]), str(ending["message"])
    except (OSError, ValueError, KeyError, TypeError):
        status, message = "unfinished" if (folder / "config.yaml").exists() else "not run", ""
    rows = RunFolder(folder).read_metrics()
    return Outcome(name, values, status, message, rows[-1] if rows else {}, read_evaluation_metrics(folder))


def write_outcome(folder: Path, status: str, message: str) -> None:
    """Record in the run folder that the run has ended."""
    with atomic_write(folder / "outcome.json") as part:
        part.write_text(json.dumps({"status": status, "message": message}) + "\n", encoding="utf-8")


def read_evaluation_metrics(folder: Path) -> dict[str, float]:
    """Name and value of every number in the run's ``evaluation.json``; a repeated name also says of which samples."""
    found: dict[str, float] = {}
    try:
        metrics = read_evaluation(folder)[1]
    except InputError as error:
        log.warning(f"no evaluation metrics for {folder.name}: {error}")
        return found
    for metric in metrics:
        name, value = str(metric["name"]), metric["value"]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            name = f"{name} ({metric['samples']})" if name in found and metric.get("samples") else name
            found.setdefault(name, float(value))
    return found
