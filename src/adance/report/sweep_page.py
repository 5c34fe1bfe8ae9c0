"""What the page of a sweep shows."""

from pathlib import Path
from typing import Any

import yaml

from adance.report import facts
from adance.report.curves import compared_curves
from adance.report.facts import class_name
from adance.report.run_page import picture_uri, sample_pictures
from adance.sweeps.axes import short_keys
from adance.sweeps.folder import SweepFolder
from adance.sweeps.table import SEEDS, Group, cell_text, columns, runs_text, summarize
from adance.training.run_folder import RunFolder

GRID_SIDE = 560


def sweep_context(folder: Path) -> dict[str, Any]:
    """Everything that ``sweep.html`` needs.

    Raises:
        InputError: The folder holds no sweep.
    """
    sweep = SweepFolder(folder)
    outcomes = sweep.outcomes()
    held = sweep.read()
    groups, config = summarize(outcomes), yaml.safe_load(held["settings"])
    done = sum(outcome.status == "done" for outcome in outcomes)
    curves, curves_legend = compared_curves(_lines(folder, groups))
    short = list(short_keys(list(groups[0].values)).values())
    return {
        "name": facts.data_name(config),
        "objective": class_name(config["objective"]),
        "over": " and ".join(short) or "seeds",
        "subtitle": f"{done} of {len(outcomes)} runs done · {class_name(config['energy'])} · {config['steps']:,} steps",
        "figures": [figure for group in groups if (figure := _figure(folder, group)) is not None],
        "table_data": _table(groups, short),
        "curves": curves,
        "curves_legend": curves_legend,
        "unfinished": [outcome for outcome in outcomes if outcome.status != "done"],
        "varied": " and ".join(short_keys(held["keys"]).values()),
        "settings": facts.settings(config, hidden=held["keys"]),
        "config": facts.as_yaml(config),
        "folder": folder.absolute().name,
    }


def shade(place: int, of: int) -> str:
    """A colour between grey and the accent, for one of several groups in order."""
    share = 100 if of == 1 else round(100 - 88 * place / (of - 1))
    return f"color-mix(in oklab, var(--accent) {share}%, var(--far))"


def _figure(folder: Path, group: Group) -> dict[str, str] | None:
    """The last samples of the group's first run that has some."""
    for outcome in group.outcomes:
        pictures = sample_pictures(folder / outcome.name)
        if pictures:
            measure = next(iter(outcome.measurements.items()), None)
            seed = ", ".join(f"{key} {value}" for key, value in outcome.values.items() if key in SEEDS)
            told = [seed] * bool(seed) + ([] if measure is None else [f"{measure[0]} {measure[1]:.4g}"])
            step = f"{int(pictures[-1].stem):,}"
            event = RunFolder(folder / outcome.name).read_data_description()["event_shape"]
            return {
                "uri": picture_uri(pictures[-1], event, GRID_SIDE),
                "title": group.title,
                "step": step,
                "note": ": ".join(told),
            }
    return None


def _table(groups: list[Group], short: list[str]) -> dict[str, Any]:
    names = columns(groups)
    rows = [
        [
            *group.values.values(),
            runs_text(group),
            *(cell_text(group, name).replace("-", "−") for name in names),
        ]
        for group in groups
    ]
    return {"head": [*short, "runs", *(name.replace("_", " ") for name in names)], "rows": rows}


def _lines(folder: Path, groups: list[Group]) -> list[tuple[str, str, list[dict[str, float]]]]:
    return [
        (group.title, shade(place, len(groups)), RunFolder(folder / outcome.name).read_metrics())
        for place, group in enumerate(groups)
        for outcome in group.outcomes
    ]
