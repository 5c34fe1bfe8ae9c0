"""Table and figures of benchmarks/thesis.py."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from statistics import fmean, stdev

import torch
from matplotlib.figure import Figure
from matplotlib.image import imread

from adance import load
from adance.plot import save_grid
from adance.sweeps import SweepFolder
from adance.training.run_folder import RunFolder

Results = Mapping[str, Mapping[int, list[dict[str, object]]]]

COLORS = ("#c25420", "#7a6f63", "#2f4858", "#b59a3c")
WINDOW, LONG = 10, 3000
BEGIN, END = "<!-- table of {}: written by benchmarks/thesis.py -->", "<!-- end of table -->"


def interval_table(results: Results, intervals: Sequence[int], floor: float) -> str:
    """Fréchet distance and cost by K, as Markdown."""
    rows = [("", *(f"K = {k}" for k in intervals)), ("---", *("---:" for _ in intervals))]
    for title, name in (("thesis: T_r = 1, fresh noise", "thesis"), ("default: constant fitted, pool", "default")):
        by_interval = _with_shared_likelihood(results, name)
        rows.append((f"Fréchet distance, {title}", *(_mean(by_interval.get(k, []), "frechet", 1) for k in intervals)))
        cost = (_mean(by_interval.get(k, []), "energy_gradients", 1e6) for k in intervals)
        rows.append(("energy gradients, millions", *cost))
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    found = next((r for runs in results.values() for rs in runs.values() for r in rs), None)
    steps = f"{found['step']:,.0f} steps" if found else "no runs yet"
    return "\n".join([*lines, "", f"{steps}; the distance of training digits to held-out ones is {floor:.1f}."])


def draw_intervals(path: Path, out: Path, data: str, results: Results, intervals: Sequence[int]) -> None:
    """The last samples of the sweeps on ``data`` at each K, the thesis's recipe above the default (figure 5.3)."""
    figure = Figure(figsize=(2.2 * len(intervals), 4.9), layout="constrained")
    axes = figure.subplots(2, len(intervals))
    for row, name in enumerate(("thesis", "default")):
        for column, k in enumerate(intervals):
            axis, runs = axes[row, column], _with_shared_likelihood(results, name).get(k, [])
            axis.set_axis_off()
            home = out / f"{data}-{'thesis' if k == 1 else name}"
            picture = next(iter(sorted(home.glob(f"interval={k},seed=*/samples/*.png"))), None)
            if picture is not None:
                axis.imshow(imread(picture), cmap="gray")
            if column == 0:
                place = {"rotation": 90, "va": "center", "ha": "right", "transform": axis.transAxes}
                axis.text(-0.04, 0.5, ("thesis: T_r = 1", "default")[row], **place)
            title = f"K = {k}" if row == 0 else ""
            axis.set_title(f"{title}\nFréchet {_mean(runs, 'frechet', 1)}".strip(), fontsize=10)
    _save(figure, path)


def draw_long_runs(path: Path, sweep: SweepFolder) -> None:
    """Samples after as many steps as in training and after 3,000, for each rejuvenation rate (figure 3.1)."""
    outcomes = [outcome for outcome in sweep.outcomes() if outcome.status == "done"]
    figure = Figure(figsize=(2.2 * len(outcomes), 4.9), layout="constrained")
    axes = figure.subplots(2, len(outcomes), squeeze=False)
    for column, outcome in enumerate(outcomes):
        run = load(sweep.path / outcome.name)
        data = run.reload_data()
        spread = float(run.score(data.batch(torch.arange(len(data.test)), "test")).std())
        axes[0, column].set_title(
            f"R = {float(outcome.values['objective.rejuvenation']):.0%}\ndata: energies ± {spread:.2g}"
        )
        for row, steps in enumerate((run.sampler.steps, LONG)):
            axis = axes[row, column]
            axis.set_axis_off()
            picture = BytesIO()
            save_grid(run.sample(36, steps=steps), picture)
            picture.seek(0)
            axis.imshow(imread(picture), cmap="gray")
            if column == 0:
                place = {"rotation": 90, "va": "center", "ha": "right", "transform": axis.transAxes}
                axis.text(-0.04, 0.5, f"{steps:,} steps", **place)
    _save(figure, path)


def draw_norms(path: Path, sweep: SweepFolder) -> None:
    """The gradient norm v during training, without and with spectral normalization, as figures 3.2 and 3.3 have it."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axis, flag, title in zip(panels, ("false", "true"), ("without spectral normalization", "with it"), strict=True):
        axis.set(title=title, xlabel="training step")
        axis.grid(alpha=0.3)
        for color, outcome in zip(
            COLORS, (o for o in sweep.outcomes() if o.values["energy.spectral_norm"] == flag), strict=False
        ):
            rows = RunFolder(sweep.path / outcome.name).read_metrics()
            steps, v = [row["step"] for row in rows], [row["gradient_norm"] for row in rows]
            share = f"R = {float(outcome.values['objective.rejuvenation']):.0%}"
            axis.plot(steps, v, color=color, alpha=0.25, linewidth=0.8)
            label = share + (" (diverged)" if outcome.status == "diverged" else "")
            axis.plot(steps[WINDOW - 1 :], _running_mean(v), color=color, label=label)
    panels[0].set_ylabel("mean ‖∇E‖ along chains, v")
    panels[0].legend(frameon=False, loc="upper left")
    _save(figure, path)


def _running_mean(values: Sequence[float]) -> list[float]:
    return [fmean(values[i : i + WINDOW]) for i in range(len(values) - WINDOW + 1)]


def put_between_markers(page: Path, text: str, begin: str, end: str = END) -> None:
    """Replace what stands between the markers of ``page``."""
    whole = page.read_text(encoding="utf-8")
    before, _, rest = whole.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no place for the table: it needs {begin} and {end}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def _with_shared_likelihood(results: Results, name: str) -> dict[int, list[dict[str, object]]]:
    """The runs of one recipe by K; at K = 1 all recipes are maximum likelihood and share the thesis's run."""
    return {1: results.get("thesis", {}).get(1, []), **results.get(name, {})}


def _mean(runs: Sequence[dict[str, object]], name: str, unit: float) -> str:
    values = [float(str(run[name])) / unit for run in runs]
    if not values:
        return "–"
    return f"{fmean(values):.3g}" + (f" ± {stdev(values):.2g}" if len(values) > 1 else "")


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
