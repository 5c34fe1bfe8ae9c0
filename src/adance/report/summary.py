"""A run in words: the head of its page, its settings and its evaluation."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adance.plot.axes import format_number

Config = Mapping[str, Any]


def class_name(part: Config | str) -> str:
    """The bare name of a class in a config, or the word that stands for one."""
    return part if isinstance(part, str) else str(part.get("class_path", "")).rpartition(".")[2]


def data_name(config: Config) -> str:
    """The name of the data set, or of its file or folder."""
    source = config.get("data")
    return Path(str(source)).name if source else "your own data"


def subtitle(config: Config, step: int, seconds: float | None, averaged: bool) -> str:
    """One line about a run."""
    took = "" if seconds is None else f" · {_duration(seconds)}"
    weights = "averaged weights" if averaged else "the last step's weights"
    return f"{class_name(config['energy'])} · {step:,} steps{took} · {weights}"


def settings(config: Config, hidden: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The most important settings, without those at ``None`` and those that are ``hidden``."""
    parts = [(part, _described(config[part])) for part in ("energy", "objective")]
    names = ("batch_size", "lr", "betas", "ema", "schedule", "grad_clip", "data_noise", "seed")
    shown = [name for name in names if config.get(name) not in (None, 0.0) or name == "seed"]
    plain = [(name.replace("_", " "), _plain(config.get(name))) for name in shown if name not in hidden]
    return [("data", data_name(config)), *parts, *plain]


def evaluation(held: Mapping[str, Any], rows: list[dict[str, Any]], step: int) -> dict[str, Any] | None:
    """What ``evaluation.json`` holds, as tables: the metrics of the first set of samples, then all.

    Args:
        held: The file.
        rows: Its metrics.
        step: The run's last step, which may be later than the file's.
    """
    if not rows:
        return None
    evaluated, first = held.get("step", step), next((row["samples"] for row in rows if _is_of_samples(row)), None)
    since = "of this run" if evaluated == step else f"at step {evaluated:,}; the run has reached step {step:,} since"
    samples = f"; samples: {first}" if first else ""
    real = {row["name"]: _value(row) for row in rows if str(row.get("samples")).endswith("instead of samples")}
    shown = [row for row in rows if _is_of_samples(row) and row["samples"] == first]
    headline = [[row["name"], _value(row), real.get(row["name"], "–")] for row in shown]
    headline += [[row["name"], _value(row), "–"] for row in rows if row.get("group") != "samples"]
    used = dict.fromkeys(key for row in rows for key, value in row.items() if value not in (None, ""))
    keys = [key for key in used if key not in ("name", "value", "group", "metric", "spread", "better")]
    cells = [[row["name"], _value(row), *(_plain(row.get(key)) for key in keys)] for row in rows]
    return {
        "caption": f"Metrics {since}{samples}",
        "headline": {"head": ["metric", "value", "real data instead"], "rows": headline},
        "all": {"head": ["metric", "value", *(key.replace("_", " ") for key in keys)], "rows": cells},
    }


def _is_of_samples(row: Mapping[str, Any]) -> bool:
    return row.get("group") == "samples" and row.get("samples") is not None


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _value(row: Mapping[str, Any]) -> str:
    spread = row.get("spread")
    return _plain(row["value"]) + (f" ± {_plain(spread)}" if isinstance(spread, (int, float)) else "")


def _described(part: Config | str) -> str:
    if isinstance(part, str):
        return part
    args = {name: value for name, value in (part.get("init_args") or {}).items() if value is not None}
    return f"{class_name(part)}({', '.join(f'{name}={_plain(value)}' for name, value in args.items())})"


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, Mapping) and "class_path" in value:
        return _described(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value if isinstance(value, str) else json.dumps(value)
    return format_number(value) if isinstance(value, float) else f"{value:,}" if value >= 10_000 else str(value)
