"""The folder of a sweep.

::

    sweep.json            the varied settings, all other settings, and the outcome of every run
    interval=5,seed=0/    a run folder, with outcome.json next to the run's files once it has ended
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from adance.atomic import output_file
from adance.errors import InputError
from adance.sweeps.axes import Values, run_names
from adance.sweeps.job import Outcome, read_outcome
from adance.training.description import check_types
from adance.yaml_text import read_mapping

NOT_SETTINGS = ("out", "resume", "device", "profile", "trackers")


class SweepFolder:
    """The folder of a sweep at ``path``."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.file = self.path / "sweep.json"

    def exists(self) -> bool:
        """Whether there is a sweep here."""
        return self.file.exists()

    def read(self) -> dict[str, Any]:
        """The content of ``sweep.json``: ``keys``, ``settings`` and ``runs``.

        Raises:
            InputError: It is missing or broken.
        """
        try:
            held: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
            settings = read_mapping(held["settings"], "settings")
            check_types(
                settings,
                {"energy": dict[str, Any] | Literal["auto"], "objective": dict[str, Any], "steps": int},
                self.file,
            )
            if not {"energy", "objective", "steps"} <= settings.keys():
                raise KeyError("settings")
            if not (held["keys"] and held["runs"]):
                raise KeyError("settings")
            for run in held["runs"]:
                words = [run["name"], *run["values"].values()]
                if list(run["values"]) != held["keys"] or not all(isinstance(word, str) for word in words):
                    raise KeyError("runs")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            why = error if isinstance(error, InputError) else repr(error)
            raise InputError(f"{self.path} is not a sweep folder: cannot read sweep.json ({why})") from None
        return held

    def points(self) -> list[Values]:
        """The combinations, in order."""
        return [dict(run["values"]) for run in self.read()["runs"]]

    def outcomes(self) -> list[Outcome]:
        """The outcome of every run, from the run folders."""
        points = self.points()
        return [
            read_outcome(name, point, self.path / name) for name, point in zip(run_names(points), points, strict=True)
        ]

    def extend(self, points: Sequence[Values], settings: str) -> list[Values]:
        """The combinations in this folder, followed by those of ``points`` that are new.

        Combinations that were refused are dropped, unless ``points`` has them.

        Raises:
            InputError: The sweep in this folder has or varies other settings, or this is a run folder.
        """
        if (self.path / "config.yaml").exists():
            raise InputError(f"{self.path} is a run folder; give the sweep another --out")
        if not self.exists():
            return list(points)
        held = self.read()
        if held["keys"] != list(points[0]):
            raise InputError(f"{self.path} holds a sweep over {', '.join(held['keys'])}; give another --out")
        then, now = _settings(held["settings"]), _settings(settings)
        for name in [*now, *then]:
            if then.get(name) != now.get(name):
                raise InputError(
                    f"{self.path} holds a sweep with {name}={then.get(name)}, not {now.get(name)}; "
                    "give another --out, or the same settings"
                )
        old = [dict(run["values"]) for run in held["runs"] if run.get("status") != "refused"]
        return old + [point for point in points if point not in old]

    def write(self, settings: str, outcomes: Sequence[Outcome]) -> None:
        """Write ``sweep.json``.

        Raises:
            InputError: The file cannot be written.
        """
        held = {"keys": list(outcomes[0].values), "settings": settings, "runs": [asdict(found) for found in outcomes]}
        with output_file(self.file) as part:
            part.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")


def _settings(text: str) -> dict[str, Any]:
    """Every setting by its full name, as in ``objective.interval``."""
    given = read_mapping(text, "settings")
    return dict(_flat({name: value for name, value in given.items() if name not in NOT_SETTINGS}))


def _flat(given: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        full = before if name == "init_args" else f"{before}.{name}".lstrip(".")
        if isinstance(value, dict) and value:
            yield from _flat(value, full)
        else:
            yield full, value
