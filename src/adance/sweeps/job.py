"""One run of a sweep: what is to be done, and what came of it."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from adance.sweeps.axes import Values
from adance.training.files import whole_file
from adance.training.run_folder import RunFolder

ENDINGS = ("done", "diverged")
"""What a run that is not tried again came to: the same seed would come to the same."""


@dataclass(frozen=True)
class Job:
    """A run to train.

    Attributes:
        name: The folder's name.
        values: What is varied, and its values here.
        folder: The run folder.
        config: All settings, as YAML.
        trusted: Modules and classes that it can name (see :func:`adance.trust`).
    """

    name: str
    values: Values
    folder: Path
    config: str
    trusted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Attributes:
        name: The folder's name.
        values: What is varied, and its values here.
        status: ``done``, ``diverged``, ``refused`` (bad input), ``failed``, ``interrupted``,
            ``unfinished`` or ``not run``.
        message: What went wrong.
        metrics: The last line of ``metrics.jsonl``.
        measurements: Name and value of every measurement in ``evaluation.json``.
    """

    name: str
    values: Values
    status: str
    message: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    measurements: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def read_outcome(name: str, values: Values, folder: Path) -> Outcome:
    """What the run in ``folder`` came to, as far as its files tell: ``unfinished`` or ``not run`` where they do not."""
    try:
        ending = json.loads((folder / "outcome.json").read_text())
        status, message = str(ending["status"]), str(ending["message"])
    except (OSError, ValueError, KeyError, TypeError):
        status, message = "unfinished" if (folder / "config.yaml").exists() else "not run", ""
    rows = RunFolder(folder).read_metrics()
    return Outcome(name, values, status, message, rows[-1] if rows else {}, read_measurements(folder))


def write_ending(folder: Path, status: str, message: str) -> None:
    """Note in the run folder that the run has ended."""
    with whole_file(folder / "outcome.json") as aside:
        aside.write_text(json.dumps({"status": status, "message": message}) + "\n")


def read_measurements(folder: Path) -> dict[str, float]:
    """Name and value of every number in the run's ``evaluation.json``; repeated names get their samples in brackets."""
    found: dict[str, float] = {}
    for row in evaluation_of(folder)[1]:
        name, value = str(row["name"]), row["value"]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            name = f"{name} ({row['samples']})" if name in found and row.get("samples") else name
            found.setdefault(name, float(value))
    return found


def evaluation_of(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The run's ``evaluation.json``, and its measurements, each with a name and a value; empty if there is none."""
    try:
        held = json.loads((folder / "evaluation.json").read_text())
    except (OSError, ValueError):
        return {}, []
    if not isinstance(held, dict):
        return {}, []
    lists = [value for value in held.values() if isinstance(value, list)]
    return held, [row for rows in lists for row in rows if isinstance(row, dict) and {"name", "value"} <= row.keys()]
