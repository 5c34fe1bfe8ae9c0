"""The ``evaluation.json`` of a run, checked when it is read."""

import json
from pathlib import Path
from typing import Any

from adance.errors import InputError
from adance.training.description import check_types


def read_evaluation(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The run's ``evaluation.json``, and its metrics, each with a name and a value; both empty if there is no file.

    Raises:
        InputError: The file is broken.
    """
    path = folder / "evaluation.json"
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read {path}: {error}; evaluate the run again, or delete the file") from None
    if not isinstance(held, dict):
        raise InputError(f"{path} is not an evaluation: evaluate the run again, or delete the file")
    lists = [value for value in held.values() if isinstance(value, list)]
    rows = [row for rows in lists for row in rows if isinstance(row, dict) and {"name", "value"} <= row.keys()]
    for row in rows:
        check_types(row, {"name": str, "samples": str | None, "value": float | str | None}, path)
    return held, rows
