"""What the interval K does to quality and to cost, and what a chain's budget buys at K = 1 instead.

    python benchmarks/intervals.py [--data digits|FILE.npz] [--seeds 0,1,2] [--jobs 2] [--only NAME,…] [--table]
    python benchmarks/intervals.py --quick

Trains by every recipe below on a labeled set of images and measures Fréchet distances of 1,000 fresh samples to the
held-out images, in a classifier's features, during training. Recipes differ in how long a chain from noise should be,
so distances are measured after 30 to 300 steps. The quality is the distance at the best of these lengths, in the mean
of the last three evaluations. One JSON file a run in benchmarks/results/intervals, so an interrupted study resumes
where it stopped. At the end tables of the digits and of mnist14 (what benchmarks/mnist14.py writes) go into
docs/long-intervals-appendix.md, with a bootstrap 90 % interval of the quality relative to the thesis's K = 1, and a
picture of quality against gradients next to it. ``--quick`` runs 2,000 steps of four recipes with one seed,
and keeps only a picture next to the results.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import intervals_figures as figures
import torch
from digits import Judge
from intervals_figures import REFERENCE
from joblib import Parallel, delayed
from thesis_figures import put_between_markers
from torch import Tensor

import adance
from adance.data import Dataset

ROOT = Path(__file__).parent
RESULTS = ROOT / "results" / "intervals"
DOCS = ROOT.parent / "docs"
STEPS, SHARES = 8000, (0.03125, 0.0625, 0.125, 0.1875, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
EVALUATIONS = 32
"""Checkpoints of a run, of which those at SHARES are evaluated."""
CONTROL = (
    *("default-K1", "default-budget-K1", "default-K10", "default-K50", "default-K200", "default-auto"),
    *("linear-K1", "linear-K10", "linear-K50", "linear-K200", "linear-auto", "small-buffer-K10", "default-finish-K20"),
    *("thesis-K1", "free-K1", "free-K10", "free-K50", "pinned-K10", "pinned-K50", "pinned-finish-K20"),
)
"""Recipes compared with K = 1 in the same loop, the first of them."""
LENGTHS = (30, 45, 60, 75, 90, 120, 150, 200, 300)
QUICK_STEPS = 2000
QUICK = (REFERENCE, "default-K10", "default-K50", "default-auto")
SOURCES = ("digits", "mnist14")
BEGIN, END = "<!-- table of {}: written by benchmarks/intervals.py -->", "<!-- end of table -->"

THESIS_LOOP = {"lr": 1e-4, "betas": (0.0, 0.999), "schedule": "constant", "ema": 0.0}
SLOW_ADAM = {"betas": (0.0, 0.999)}
DRAWS = 1000


def short_run(steps: int = 30, bounds: tuple[float, float] | None = None) -> adance.Langevin:
    return adance.Langevin(steps, 1.0, 0.005, bounds=bounds)


def thesis(interval: int, steps: int = 30) -> adance.AdaNCE:
    """Algorithm 3.1: the ratio at temperature 1, fresh noise every step."""
    return adance.AdaNCE(short_run(steps), interval=interval, ratio_temperature=1.0, margin=0.0, pool=0)


def pinned(sampler: adance.Langevin | None = None, **settings: Any) -> adance.AdaNCE:
    """The default, but with T_r = 0.005 and chains that are not clamped to [−1, 1]."""
    return adance.AdaNCE(sampler or short_run(), ratio_temperature=0.005, **settings)


def free(**settings: Any) -> adance.AdaNCE:
    """The default, but with chains that are not clamped to [−1, 1]."""
    return adance.AdaNCE(short_run(), **settings)


@dataclass(frozen=True)
class Recipe:
    """An objective, the settings of the loop that differ from the default, and the steps of a whole run."""

    title: str
    objective: Callable[[], adance.AdaNCE]
    loop: Mapping[str, Any]
    steps: int = STEPS


RECIPES: dict[str, Recipe] = {
    "thesis-K1": Recipe("thesis, K = 1", lambda: thesis(1), THESIS_LOOP),
    "free-budget-K1": Recipe(
        "K = 1, chains not clamped, 800 steps",
        lambda: free(interval=1),
        {"decay_after": 200, "ema": 0.99},
        steps=800,
    ),
    "pinned-K10": Recipe("K = 10, T_r = 0.005", lambda: pinned(), {}),
    "pinned-K50": Recipe("K = 50, T_r = 0.005", lambda: pinned(interval=50), {}),
    "pinned-K20": Recipe("K = 20, T_r = 0.005", lambda: pinned(interval=20), {}),
    "pinned-K5": Recipe("K = 5, T_r = 0.005", lambda: pinned(interval=5), {}),
    "pinned-K200": Recipe("K = 200, T_r = 0.005", lambda: pinned(interval=200), {}),
    "pinned-auto": Recipe("auto, T_r = 0.005", lambda: pinned(interval="auto"), {}),
    "free-K10": Recipe("K = 10, chains not clamped", lambda: free(), {}),
    "free-K50": Recipe("K = 50, chains not clamped", lambda: free(interval=50), {}),
    "default-K1": Recipe("K = 1 in the default's loop", lambda: adance.AdaNCE(interval=1), {}),
    "default-K10": Recipe("default, K = 10", lambda: adance.AdaNCE(), {}),
    "default-K20": Recipe("default, K = 20", lambda: adance.AdaNCE(interval=20), {}),
    "default-K50": Recipe("default, K = 50", lambda: adance.AdaNCE(interval=50), {}),
    "default-K200": Recipe("default, K = 200", lambda: adance.AdaNCE(interval=200), {}),
    "default-auto": Recipe("default, auto", lambda: adance.AdaNCE(interval="auto"), {}),
    "default-budget-K1": Recipe(
        "K = 1 in the default's loop, 800 steps",
        lambda: adance.AdaNCE(interval=1),
        {"decay_after": 200, "ema": 0.99},
        steps=800,
    ),
    "pinned-finish-K10": Recipe("K = 10, then K = 1 for 2 %", lambda: pinned(finish=0.02), {}),
    "pinned-finish-K20": Recipe(
        "K = 20, then K = 1 for 5 %, T_r = 0.005",
        lambda: pinned(interval=20, pool=128, finish=0.05),
        {},
    ),
    "default-finish-K20": Recipe(
        "K = 20 with pools of one batch, then K = 1 for 5 %",
        lambda: adance.AdaNCE(interval=20, pool=128, finish=0.05),
        {},
    ),
    "early-1000-K10": Recipe("K = 10, the rate falls from step 1,000", lambda: adance.AdaNCE(), {"decay_after": 1000}),
    "early-500-K10": Recipe("K = 10, the rate falls from step 500", lambda: adance.AdaNCE(), {"decay_after": 500}),
    "linear-K10": Recipe("K = 10, the rate falls to 2 %", lambda: adance.AdaNCE(), {"schedule": "linear"}),
    "linear-K1": Recipe("K = 1, the rate falls to 2 %", lambda: adance.AdaNCE(interval=1), {"schedule": "linear"}),
    "linear-K50": Recipe("K = 50, the rate falls to 2 %", lambda: adance.AdaNCE(interval=50), {"schedule": "linear"}),
    "linear-K200": Recipe(
        "K = 200, the rate falls to 2 %", lambda: adance.AdaNCE(interval=200), {"schedule": "linear"}
    ),
    "linear-auto": Recipe(
        "auto, the rate falls to 2 %", lambda: adance.AdaNCE(interval="auto"), {"schedule": "linear"}
    ),
    "small-buffer-K10": Recipe("K = 10, a buffer of 640 chains", lambda: adance.AdaNCE(buffer=640), {}),
    "ema-K10": Recipe("K = 10, a longer average of weights", lambda: adance.AdaNCE(), {"ema": 0.9997}),
    "one-K20": Recipe("K = 20, one snapshot", lambda: pinned(interval=20, snapshots=1), {}),
    "one-K50": Recipe("K = 50, one snapshot", lambda: pinned(interval=50, snapshots=1), {}),
    "one-K200": Recipe("K = 200, one snapshot", lambda: pinned(interval=200, snapshots=1), {}),
    "two-K50": Recipe("K = 50, two snapshots", lambda: pinned(interval=50, snapshots=2), {}),
    "five-K50": Recipe("K = 50, five snapshots", lambda: pinned(interval=50, snapshots=5), {}),
    "three-K10": Recipe("K = 10, three snapshots", lambda: pinned(snapshots=3), {}),
    "three-auto": Recipe("auto, three snapshots", lambda: pinned(interval="auto", snapshots=3), {}),
    "slow-adam-K10": Recipe("K = 10, T_r = 0.005, Adam's β₂ = 0.999", lambda: pinned(), SLOW_ADAM),
    "slow-adam-K50": Recipe(
        "K = 50, one snapshot, Adam's β₂ = 0.999", lambda: pinned(interval=50, snapshots=1), SLOW_ADAM
    ),
    "K20-one-batch": Recipe("K = 20, pools of one batch", lambda: pinned(interval=20, pool=128), {}),
    "short-K1": Recipe(
        "K = 1 with 3-step chains: the budget of K = 10", lambda: adance.AdaNCE(short_run(3), interval=1), {}
    ),
    "margin-K50": Recipe("K = 50, hinge with margin 0.01", lambda: free(interval=50, margin=0.01), {}),
    "margin-K5": Recipe("K = 5, hinge with margin 0.01", lambda: free(interval=5, margin=0.01), {}),
    "thesis-loop-K10": Recipe("K = 10, T_r = 0.005, in the thesis's loop", lambda: pinned(), THESIS_LOOP),
    "free-K1": Recipe("K = 1, chains not clamped", lambda: free(interval=1), {}),
    "long-thesis-K1": Recipe("thesis, K = 1, chains of 100 steps", lambda: thesis(1, 100), THESIS_LOOP),
    "long-pinned-K10": Recipe("K = 10, T_r = 0.005, chains of 100 steps", lambda: pinned(short_run(100)), {}),
    "thesis-K50": Recipe("thesis, K = 50", lambda: thesis(50), THESIS_LOOP),
    "thesis-K10": Recipe("thesis, K = 10", lambda: thesis(10), THESIS_LOOP),
}


TITLES = {name: recipe.title for name, recipe in RECIPES.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits", help="a labeled set of images, by name or file")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--jobs", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--only", help="recipes, by commas; by default all, and five with --quick")
    parser.add_argument("--quick", action="store_true", help="2,000 steps, one seed, nothing kept")
    parser.add_argument("--table", action="store_true", help="only the tables of what is there")
    args = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    names = args.only.split(",") if args.only else QUICK if args.quick else tuple(RECIPES)
    if args.quick:
        quick(names, args.data, args.jobs)
        return
    if not args.table:
        runs = [(name, args.data, int(seed)) for seed in args.seeds.split(",") for name in names]
        Parallel(args.jobs)(delayed(keep)(*run) for run in runs)
    by_source = {source: {name: results(source, name) for name in RECIPES} for source in SOURCES}
    by_source = {source: found for source, found in by_source.items() if any(found.values())}
    for source, found in by_source.items():
        text = figures.table(found, TITLES, STEPS, figures.times(source))
        print(f"{source}\n{text}")
        put_between_markers(DOCS / "long-intervals-appendix.md", text, BEGIN.format(source), END)
        text = figures.control(found, TITLES, CONTROL)
        print(f"{source}\n{text}")
        put_between_markers(DOCS / "long-intervals.md", text, BEGIN.format(f"control of {source}"), END)
    figures.draw(DOCS / "images" / "intervals.png", by_source, TITLES)


def quick(names: Sequence[str], source: str, jobs: int) -> None:
    """A look at what the recipes do, in ten minutes: a table, and a picture next to the results."""
    rows = Parallel(jobs)(delayed(train)(name, source, 0, QUICK_STEPS * RECIPES[name].steps // STEPS) for name in names)
    found = {REFERENCE: [], **{name: [row] for name, row in zip(names, rows, strict=True)}}
    print(figures.table(found, TITLES, QUICK_STEPS))
    picture = RESULTS.parent / "intervals-quick.png"
    figures.draw(picture, {Path(source).stem: found}, TITLES)
    print(f"drawn in {picture}")


def keep(name: str, source: str, seed: int) -> None:
    """One run, in its own file."""
    kept = RESULTS / f"{Path(source).stem}-{name}-{seed}.json"
    if kept.exists():
        return
    result = train(name, source, seed, RECIPES[name].steps)
    kept.write_text(json.dumps(result) + "\n", encoding="utf-8")
    print(f"{kept.stem}: {result}", flush=True)


def train(name: str, source: str, seed: int, steps: int) -> dict[str, Any]:
    """Quality during training, and what it cost."""
    torch.set_num_threads(1)
    data, recipe = adance.load_data(source), RECIPES[name]
    judge = Judge(data)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        energy = adance.MLP(data.event_shape)
    began, every = time.monotonic(), steps // EVALUATIONS
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_of(recipe, steps=steps, seed=seed, log_every=every, checkpoint_every=every)
        out = Path(folder) / "run"
        trainer = adance.Trainer(energy, recipe.objective(), data, settings, out, device="cpu", show_progress=False)
        try:
            trainer.fit()
        except adance.DivergedError as error:
            return {"diverged": str(error)}
        spent = {row["step"]: row for row in trainer.folder.read_metrics()}
        found = []
        for share in SHARES:
            until = round(share * EVALUATIONS) * every
            # recipes train with different chains, but the chains that evaluate a run differ at most in their bounds
            run = adance.load(out, step=until)
            run = replace(run, kernel=short_run(bounds=getattr(run.kernel, "bounds", None)))
            cost = {"gradients": spent[until]["energy_gradients"], "seconds": spent[until]["seconds"]}
            found.append({"step": until, **cost, **look(judge, run, data)})
        return {
            "curve": found,
            "gradients": found[-1]["gradients"],
            "seconds": found[-1]["seconds"],
            "wall": time.monotonic() - began,
            "floor": judge.floor,
        }


def settings_of(recipe: Recipe, **others: Any) -> adance.Settings:
    """The loop of a recipe."""
    return adance.Settings(**{"sample_every": 0, **recipe.loop, **others})


def look(judge: Judge, run: adance.Run, data: Dataset) -> dict[str, Any]:
    """Fréchet distances and mean energies of chains from noise on their way, and the mean energy of data."""
    frechet: dict[str, float] = {}
    energy = {"data": float(run.score(data.batch(torch.arange(DRAWS))).mean())}

    def measure(step: int, x: Tensor) -> None:
        if step in LENGTHS:
            frechet[str(step)], energy[str(step)] = judge.measure(x)["frechet"], float(run.score(x).mean())

    run.sample(DRAWS, steps=max(LENGTHS), callback=measure)
    return {"frechet": frechet, "energy": energy}


def results(source: str, name: str) -> list[dict[str, Any]]:
    """What has been kept of a recipe."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob(f"{source}-{name}-*.json"))]


if __name__ == "__main__":
    main()
