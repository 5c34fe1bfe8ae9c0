"""The folder of a run, which training writes and every other command reads.

::

    config.yaml      all settings, as read by ``adance train --config``
    data.json        shape and units of the data
    metrics.jsonl    one line every ``log_every`` steps, each with a checksum
    checkpoints/     one folder per checkpoint, named by its step
    samples/         samples during training, each as a picture and as an array
"""

import json
import logging
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from adance.atomic import atomic_write, reason
from adance.errors import InputError
from adance.numbers import is_whole
from adance.signatures import accepts
from adance.training.checksums import KEY, intact, with_checksum, without_checksum
from adance.training.description import check_description, check_types
from adance.yaml_text import dump, read_mapping

log = logging.getLogger("adance")

DISTANCE = "sample_distance"
"""Name of the distance of samples from data in ``metrics.jsonl``."""

FORMAT = 2
"""The format of run folders; a folder of another format is refused."""


CONFIG_TYPES = {"data": str | None, "data_seed": int, "held_out": float, "image_size": int | None}


class RunFolder:
    """Paths and small files of the run at ``path``."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.samples = self.path / "samples"
        self.metrics = self.path / "metrics.jsonl"

    @classmethod
    def claim(cls, parent: Path, name: str) -> "RunFolder":
        """Create the first of ``name-1``, ``name-2``, … in ``parent`` that does not exist yet.

        If several processes do this at the same time, each gets its own folder.

        Raises:
            InputError: The folder cannot be created.
        """
        try:
            parent.mkdir(parents=True, exist_ok=True)
            for number in count(1):
                with suppress(FileExistsError):
                    (parent / f"{name}-{number}").mkdir()
                    break
        except OSError as error:
            raise InputError(f"cannot create a run folder in {parent}: {reason(error)}") from None
        return cls(parent / f"{name}-{number}")

    def refuse_taken(self) -> None:
        """Check that a new run can be written here.

        Raises:
            InputError: The path already holds a run, or is not a folder.
        """
        if (self.path / "config.yaml").exists():
            raise InputError(f"{self.path} already holds a run; resume it, or choose another folder")
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file; choose a folder for the run")
        if self.checkpoint_steps():
            raise InputError(f"{self.path} holds checkpoints, but no config.yaml; choose another folder")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn an ``OSError`` inside the block into a one-line ``InputError``.

        Raises:
            InputError: The folder cannot be written; the message names the last good checkpoint.
        """
        try:
            yield
        except OSError as error:
            steps = self.checkpoint_steps()
            good = f"; last good checkpoint: {self.checkpoint(steps[-1])}" if steps else ""
            raise InputError(f"cannot write the run folder {self.path}: {reason(error)}{good}") from None

    def create(self, config: dict[str, Any], data: dict[str, Any]) -> None:
        """Write the config and the data's description.

        Raises:
            InputError: The folder already holds a run, or cannot be written.
        """
        self.refuse_taken()
        with self.writing():
            with atomic_write(self.path / "data.json") as part:
                part.write_text(with_checksum({"format": FORMAT, **data}), encoding="utf-8")
            self.write_config(config)

    def write_config(self, config: dict[str, Any]) -> None:
        """Write ``config.yaml``, replacing an earlier one."""
        with atomic_write(self.path / "config.yaml") as part:
            part.write_text(dump(config), encoding="utf-8")

    def read_config(self) -> dict[str, Any]:
        """The config.

        Raises:
            InputError: The folder holds no run, a run of another format, or a config that cannot be read.
        """
        try:
            text = (self.path / "config.yaml").read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InputError(f"{self.path} is not a run folder: it has no config.yaml") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read {self.path / 'config.yaml'}: {error}") from None
        config = read_mapping(text, str(self.path / "config.yaml"))
        if not {"energy", "objective", "steps"} <= config.keys():
            raise InputError(
                f"{self.path / 'config.yaml'} is not the config of a run: it must contain energy, objective and steps"
            )
        for part in ("energy", "objective"):
            if not (
                isinstance(config[part], dict)
                and isinstance(config[part].get("class_path", ""), str)
                and isinstance(config[part].get("init_args"), dict | None)
            ):
                raise InputError(f"{self.path / 'config.yaml'}: {part} must have a class_path and init_args")
        check_types(config, CONFIG_TYPES, self.path / "config.yaml")
        self.read_data_description()
        return config

    def read_data_description(self) -> dict[str, Any]:
        """Shape and units of the data.

        Raises:
            InputError: The file is missing or broken, or the run has another format.
        """
        try:
            description: dict[str, Any] = json.loads((self.path / "data.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"cannot read {self.path / 'data.json'}: {error}") from None
        if not isinstance(description, dict) or not {"kind", "event_shape", "transform"} <= description.keys():
            raise InputError(
                f"{self.path / 'data.json'} does not describe data: it must contain kind, event_shape and transform"
            )
        description = without_checksum(description, self.path / "data.json")
        found = description.pop("format", 1)
        if found != FORMAT:
            raise InputError(
                f"{self.path} has run format {found}, and this version of adance reads format {FORMAT}: train again, "
                "or use the version that wrote it"
            )
        check_description(description, self.path / "data.json")
        return description

    def checkpoint(self, step: int) -> Path:
        """The folder of the checkpoint of ``step``."""
        return self.checkpoints / f"{step:08d}"

    def checkpoint_steps(self) -> list[int]:
        """Steps of all checkpoints, in order."""
        # unlike glob, this fails if the folder cannot be read: training would start again
        names = os.listdir(self.checkpoints) if self.checkpoints.exists() else []
        return sorted(int(name) for name in names if name.isdecimal())  # not of "²", which is a digit

    def append_metrics(self, row: dict[str, float]) -> None:
        """Add a line to ``metrics.jsonl``; non-finite numbers, which JSON lacks, become null."""
        line = {name: value if math.isfinite(value) else None for name, value in row.items()}
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(with_checksum(line))

    def read_metrics(self) -> list[dict[str, float]]:
        """The lines of ``metrics.jsonl``, without nulls, damaged lines and a truncated last line.

        Numbers that JSON lacks, and those too large for a float, count as nulls; training writes neither.
        """
        rows = self._metrics_rows()
        return [{name: value for name, value in row.items() if _is_finite(value)} for row in rows]

    def distances(self) -> dict[int, float]:
        """The distance of samples from data at each step at which it was measured, in order."""
        return {int(row["step"]): row[DISTANCE] for row in self.read_metrics() if DISTANCE in row}

    def best_step(self) -> int:
        """The step of the checkpoint whose samples are nearest to data.

        Raises:
            InputError: No distance was measured at a checkpoint.
        """
        steps = self.checkpoint_steps()
        found = {step: distance for step, distance in self.distances().items() if step in steps}
        if not found:
            raise InputError(f"{self.path} has no best checkpoint: train with --evaluate_every to measure samples")
        return min(found, key=found.__getitem__)

    def remove_parts(self) -> None:
        """Remove the unfinished files of a killed run."""
        for folder in (self.path, self.checkpoints, self.samples):
            for part in folder.glob(".*.part"):
                shutil.rmtree(part) if part.is_dir() else part.unlink()

    def trim_metrics(self, step: int) -> None:
        """Drop the lines after ``step``."""
        kept = [with_checksum(row) for row in self._metrics_rows() if row["step"] <= step]
        with atomic_write(self.metrics) as part:
            part.write_text("".join(kept), encoding="utf-8")

    def _metrics_rows(self) -> list[dict[str, Any]]:
        """The lines that hold a step; one that is truncated or damaged is left out, and a warning says so."""
        lines = self.metrics.read_bytes().splitlines(keepends=True) if self.metrics.exists() else []
        found = [_json_object(line) for line in lines]
        checked = any(KEY in row for row in found)  # runs of earlier versions have no checksums
        rows = [intact(row) if KEY in row or not checked else None for row in found]
        kept = [row for row in rows if row and accepts(dict[str, float | None], row) and is_whole(row.get("step"))]
        whole = sum(line.endswith(b"\n") for line in lines)
        if (damaged := whole - len(kept)) > 0:
            log.warning(f"{self.metrics}: left out {damaged} damaged line{'s' * (damaged > 1)}")
        return kept


def _is_finite(value: float | None) -> bool:
    try:
        return value is not None and math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def _json_object(line: bytes) -> dict[str, Any]:
    """The object that a line holds; empty if there is none."""
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}
