"""Milliseconds that a training step takes in the recipes of benchmarks/intervals.py.

    python benchmarks/intervals_time.py [--data digits|FILE.npz] [--repeats 3] [--only NAME,…]

Recipes take turns of 400 steps on one thread, the first 200 of which do not count; a number is the median.
Chains are compiled where a run of the study's length would have them compiled. The study's own runs share the machine
with each other, so the seconds in its tables are reckoned from what this leaves in
benchmarks/results/intervals-time.json. Run it on a machine that does nothing else.
"""

import argparse
import json
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path

import torch
from intervals import RECIPES, settings_of
from intervals_figures import TIMES

import adance
from adance.data import Dataset

NAMES = "thesis-K1,free-budget-K1,pinned-K5,pinned-K10,pinned-K20,pinned-K50,pinned-K200,pinned-auto,one-K50"
LONGER = "long-thesis-K1,long-pinned-K10"
TURN, EVERY, WARM = 400, 100, 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits", help="a labeled set of images, by name or file")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default=f"{NAMES},{LONGER}", help="recipes, by commas")
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = adance.load_data(args.data)
    compiled = {name: compiles(name, data) for name in args.only.split(",")}
    turns: dict[str, list[float]] = {name: [] for name in compiled}
    for _ in range(args.repeats):
        for name in turns:
            turns[name] += turn(name, data, compiled[name])
    found = {name: statistics.median(seconds) for name, seconds in turns.items()}
    for name, seconds in found.items():
        print(f"{name}: {1e3 * seconds:.3g} ms a step{', chains compiled' * compiled[name]}")
    kept = json.loads(TIMES.read_text(encoding="utf-8")) if TIMES.exists() else {}
    source = Path(args.data).stem
    TIMES.write_text(json.dumps(kept | {source: kept.get(source, {}) | found}, indent=1) + "\n", encoding="utf-8")


def compiles(name: str, data: Dataset) -> bool:
    """Whether a run of the study's length compiles its chains."""
    with tempfile.TemporaryDirectory() as folder:
        return trainer(name, data, Path(folder) / "run", RECIPES[name].steps, "auto").chains.compile


def turn(name: str, data: Dataset, compiled: bool) -> list[float]:
    """Seconds a step in each part of one turn."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        metrics = trainer(name, data, out, TURN, "on" if compiled else "off").fit().folder.read_metrics()
    at = {row["step"]: row["seconds"] for row in metrics if row["step"] >= WARM}
    return [(at[late] - at[early]) / (late - early) for early, late in pairwise(sorted(at))]


def trainer(name: str, data: Dataset, out: Path, steps: int, compile: str) -> adance.Trainer:
    recipe = RECIPES[name]
    torch.manual_seed(0)
    settings = settings_of(recipe, steps=steps, log_every=EVERY, compile=compile)
    options = {"device": "cpu", "show_progress": False}
    return adance.Trainer(adance.MLP(data.event_shape), recipe.objective(), data, settings, out, **options)


if __name__ == "__main__":
    main()
