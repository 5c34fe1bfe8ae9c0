"""What the page of a sweep shows."""

from pathlib import Path
from typing import Any

import yaml

from adance.report import summary
from adance.report.charts import compared_curves, group_colors
from adance.report.images import saved_uri
from adance.report.run_page import sample_pictures
from adance.sweeps.axes import short_keys
from adance.sweeps.folder import SweepFolder
from adance.sweeps.table import SEEDS, Group, as_cells, summarize
from adance.training.run_folder import RunFolder
from adance.yaml_text import dump

GRID_SIDE = 560


def sweep_context(folder: Path) -> dict[str, Any]:
    """Everything that ``sweep.html`` needs.

    Raises:
        InputError: The folder holds no sweep.
    """
    sweep = SweepFolder(folder)
    outcomes, held = sweep.outcomes(), sweep.read()
    groups, config = summarize(outcomes), yaml.safe_load(held["settings"])
    done = sum(outcome.status == "done" for outcome in outcomes)
    short = list(short_keys(list(groups[0].values)).values())
    energy, objective = (summary.class_name(config[part]) for part in ("energy", "objective"))
    lines = [(g.title, [RunFolder(folder / outcome.name).read_metrics() for outcome in g.outcomes]) for g in groups]
    legend = zip((group.title for group in groups), group_colors(len(groups)).values(), strict=True)
    return {
        "name": summary.data_name(config),
        "objective": objective,
        "over": " and ".join(short) or "seeds",
        "subtitle": f"{done} of {len(outcomes)} runs done · {energy} · {config['steps']:,} steps",
        "figures": [figure for group in groups if (figure := _figure(folder, group)) is not None],
        "table_data": _table(groups),
        "curves": compared_curves(lines),
        "curves_legend": [(name, color, False) for name, color in legend],
        "unfinished": [outcome for outcome in outcomes if outcome.status != "done"],
        "varied": " and ".join(short_keys(held["keys"]).values()),
        "settings": summary.settings(config, hidden=held["keys"]),
        "config": dump(config),
        "folder": folder.absolute().name,
    }


def _figure(folder: Path, group: Group) -> dict[str, str] | None:
    """The last samples of the first run of the group that has samples."""
    for outcome in group.outcomes:
        if pictures := sample_pictures(folder / outcome.name):
            seed = ", ".join(f"{key} {value}" for key, value in outcome.values.items() if key in SEEDS)
            metrics = [f"{name} {value:.4g}" for name, value in outcome.evaluation.items()]
            return {
                "uri": saved_uri(pictures[-1], GRID_SIDE),
                "title": group.title,
                "step": f"{int(pictures[-1].stem):,}",
                "note": ": ".join([seed] * bool(seed) + metrics[:1]),
            }
    return None


def _table(groups: list[Group]) -> dict[str, Any]:
    head, *rows = as_cells(groups)
    n = len(groups[0].values)
    return {"head": head, "rows": [[*row[:n], *(cell.replace("-", "−") for cell in row[n:])] for row in rows]}
