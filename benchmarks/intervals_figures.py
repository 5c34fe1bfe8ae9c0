"""Table and picture of benchmarks/intervals.py."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Any]]
"""The results of one recipe, one for each seed."""

REFERENCE, LONGER = "thesis-K1", "long-"
"""The recipe that others are compared with, and how names of those with chains of 100 steps begin."""

DRAWN = (
    REFERENCE,
    *("default-K1", "default-budget-K1", "default-K10", "linear-K10", "default-K50", "default-K200", "default-auto"),
    "free-K10",
)
"""Recipes in the picture."""

TIMES = Path(__file__).parent / "results" / "intervals-time.json"
"""Seconds a step, by set of images and recipe; from benchmarks/intervals_time.py."""

BOOTSTRAPS = 10_000
LAST, TWICE, LONG = 3, "60", "300"
HEADER = (
    "recipe",
    "seeds",
    "Fréchet distance",
    "at steps",
    "after 60",
    "after 300",
    "relative to the thesis's K = 1, 90 %",
    "gradients, millions",
    "gradients to its quality, millions",
    "seconds to it",
)

CONTROL_HEADER = (
    "recipe",
    "seeds",
    "final distance",
    "relative to K = 1 in the same loop, 90 %",
    "gradients, millions",
)


def table(
    found: Mapping[str, Rows], titles: Mapping[str, str], steps: int, times: Mapping[str, float] | None = None
) -> str:
    """Markdown: means and standard deviations over seeds, and what it cost to get to the reference's quality.

    Seconds are known of recipes in ``times``, seconds a step.
    """
    lines = ["| " + " | ".join(HEADER) + " |", "|---|" + "---:|" * (len(HEADER) - 1)]
    for name, rows in found.items():
        finished = done(rows)
        if not rows:
            continue
        if not finished:
            lines.append(f"| {titles[name]} | {len(rows)} | diverged |" + " |" * (len(HEADER) - 3))
            continue
        best = [quality(row) for row in finished]
        reference = [quality(row) for row in done(found.get(reference_of(name), ()))]
        diverged = f", {len(rows) - len(finished)} diverged" if len(finished) < len(rows) else ""
        cells = [
            titles[name],
            f"{len(finished)}{diverged}",
            spread(best),
            lengths(finished),
            *(spread([quality(row, steps) for row in finished]) for steps in (TWICE, LONG)),
            relative(best, reference),
            f"{statistics.mean(row['gradients'] for row in finished) / 1e6:.1f}",
            *cost(finished, reference, (times or {}).get(name)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    floors = sorted({f"{row['floor']:.1f}" for rows in found.values() for row in done(rows)})
    return "\n".join([*lines, "", f"{steps:,} steps; training images to held-out ones: {', '.join(floors)}."])


def control(found: Mapping[str, Rows], titles: Mapping[str, str], names: Sequence[str]) -> str:
    """Markdown: distances at the very end, relative to those of K = 1 in the same loop, the first of ``names``."""
    lines = ["| " + " | ".join(CONTROL_HEADER) + " |", "|---|" + "---:|" * (len(CONTROL_HEADER) - 1)]
    reference = [distance(row["curve"][-1]) for row in done(found[names[0]])]
    for name in names:
        rows = done(found[name])
        if rows:
            final = [distance(row["curve"][-1]) for row in rows]
            gradients = f"{statistics.mean(row['gradients'] for row in rows) / 1e6:.1f}"
            cells = (titles[name], f"{len(rows)}", spread(final), relative(final, reference), gradients)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def times(source: str) -> dict[str, float]:
    """Seconds a step of the recipes whose time has been taken."""
    kept = json.loads(TIMES.read_text(encoding="utf-8")) if TIMES.exists() else {}
    return dict(kept.get(source, {}))


def reference_of(name: str) -> str:
    """The recipe that ``name`` is compared with: one with chains as long as its own."""
    return LONGER * name.startswith(LONGER) + REFERENCE


def done(rows: Rows) -> list[Mapping[str, Any]]:
    """Those that did not diverge."""
    return [row for row in rows if "curve" in row]


def quality(row: Mapping[str, Any], steps: str | None = None) -> float:
    """Mean of the last evaluations, of chains of this many steps or at the best of all lengths."""
    return statistics.mean(distance(point, steps) for point in row["curve"][-LAST:])


def distance(point: Mapping[str, Any], steps: str | None = None) -> float:
    """The Fréchet distance of one evaluation."""
    found = point["frechet"]
    return float(min(found.values()) if steps is None else found[steps])


def lengths(rows: Rows) -> str:
    """The best numbers of steps in the last evaluations, from least to most."""
    best = {min(point["frechet"], key=point["frechet"].get) for row in rows for point in row["curve"][-LAST:]}
    least, most = min(map(int, best)), max(map(int, best))
    return f"{least}" if least == most else f"{least} to {most}"


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation."""
    deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{deviation}"


def relative(best: Sequence[float], reference: Sequence[float]) -> str:
    """Ratio of means, with a bootstrap interval over seeds where there are several of both."""
    if not reference:
        return "–"
    ratio = statistics.mean(best) / statistics.mean(reference)
    if best == reference:
        return "1.00"
    if len(best) < 2 or len(reference) < 2:
        return f"{ratio:.2f}"
    generator = torch.Generator().manual_seed(0)

    def means(values: Sequence[float]) -> torch.Tensor:
        rows = torch.randint(len(values), (BOOTSTRAPS, len(values)), generator=generator)
        return torch.tensor(values)[rows].mean(1)

    low, high = (means(best) / means(reference)).quantile(torch.tensor([0.05, 0.95])).tolist()
    return f"{ratio:.2f} ({low:.2f} to {high:.2f})"


def mean_curve(rows: Rows) -> list[dict[str, float]]:
    """The mean over seeds of every evaluation during training."""
    curves = [row["curve"] for row in done(rows)]
    return [
        {key: statistics.mean(p[key] for p in points) for key in ("step", "gradients")}
        | {"frechet": statistics.mean(map(distance, points))}
        for points in zip(*curves, strict=True)
    ]


def cost(rows: Rows, reference: Sequence[float], seconds: float | None) -> tuple[str, str]:
    """Gradients in millions and seconds at the first evaluation whose mean over seeds is as good as the reference.

    ``seconds`` are those of a step.
    """
    goal = statistics.mean(reference) if reference else 0.0
    for point in mean_curve(rows):
        if point["frechet"] <= goal:
            return f"{point['gradients'] / 1e6:.1f}", "–" if seconds is None else f"{point['step'] * seconds:.0f}"
    return "–", "–"


def draw(path: Path, by_source: Mapping[str, Mapping[str, Rows]], titles: Mapping[str, str]) -> None:
    """Quality against energy gradients during training, means over seeds, one panel a set of images."""
    figure = Figure(figsize=(5.8 * len(by_source), 5.4), layout="constrained")
    axes = figure.subplots(1, len(by_source), squeeze=False)[0]
    for axis, (source, found) in zip(axes, by_source.items(), strict=True):
        for number, name in enumerate(DRAWN):
            if not done(found[name]):
                continue
            curve = mean_curve(found[name])
            style = {"color": "black", "lw": 2.5} if name == REFERENCE else {"color": f"C{number - 1}"}
            seeds = len(done(found[name]))
            label = f"{titles[name]} ({seeds} seed{'s' * (seeds > 1)})"
            axis.plot([p["gradients"] for p in curve], [p["frechet"] for p in curve], label=label, **style)
        if done(found[REFERENCE]):
            goal = statistics.mean(map(quality, done(found[REFERENCE])))
            axis.axhline(goal, color="black", lw=0.8, ls=":")
        axis.set(xscale="log", yscale="log", xlabel="energy gradients", ylabel="Fréchet distance", title=source)
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    figure.savefig(path, dpi=110)
