"""What the interval K does on vectors, with chains that are reweighted at each refresh and with others.

    python benchmarks/intervals2d.py [--sets 8gaussians,rings] [--only K50,auto,…] [--seeds 0,1,2] [--jobs 2] [--table]

Trains AdaNCE as benchmarks/density2d.py does, by every recipe below: Kullback-Leibler divergence by integration on a
grid. One JSON file a run in benchmarks/results/intervals2d, so an interrupted study resumes where it stopped. At the
end a table in docs/long-intervals-appendix.md.
"""

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path

import density2d
from joblib import Parallel, delayed
from thesis_figures import put_between_markers

import adance

RESULTS = Path(__file__).parent / "results" / "intervals2d"
SETS = ("8gaussians", "rings")
BEGIN, END = "<!-- table of vectors: written by benchmarks/intervals2d.py -->", "<!-- end of table -->"

RECIPES: dict[str, Callable[[], adance.AdaNCE]] = {
    "K1": lambda: adance.AdaNCE(interval=1),
    "K5": lambda: adance.AdaNCE(interval=5),
    "K10": lambda: adance.AdaNCE(interval=10),
    "K50": lambda: adance.AdaNCE(interval=50),
    "K200": lambda: adance.AdaNCE(interval=200, pool=1280),
    "auto": lambda: adance.AdaNCE(interval="auto"),
    "damped": lambda: adance.AdaNCE(interval=50, ratio_temperature=0.1, center=True),
    "rejuvenated": lambda: adance.AdaNCE(interval=50, start="rejuvenated"),
    "rejuvenated-undamped": lambda: adance.AdaNCE(interval=50, start="rejuvenated", ratio_temperature=1.0, center=True),
    "rejuvenated-K1": lambda: adance.AdaNCE(interval=1, start="rejuvenated"),
}

TITLES = {
    "K1": "reweighted, K = 1",
    "K5": "reweighted, K = 5",
    "K10": "reweighted, K = 10",
    "K50": "reweighted, K = 50",
    "K200": "reweighted, K = 200, the pool of K = 50",
    "auto": "reweighted, auto, the default",
    "damped": "reweighted, K = 50, T_r = 0.1 T",
    "rejuvenated": "rejuvenated, K = 50, T_r = 0.01 T",
    "rejuvenated-undamped": "rejuvenated, K = 50, T_r = T",
    "rejuvenated-K1": "rejuvenated, K = 1",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--only", default=",".join(RECIPES), help="recipes, by commas")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--jobs", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--table", action="store_true", help="only the table of what is there")
    args = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if not args.table:
        runs = [
            (recipe, name, int(seed))
            for seed in args.seeds.split(",")
            for recipe in args.only.split(",")
            for name in args.sets.split(",")
        ]
        Parallel(args.jobs)(delayed(keep)(*run) for run in runs)
    text = table()
    print(text)
    put_between_markers(density2d.DOCS / "long-intervals-appendix.md", text, BEGIN, END)


def keep(recipe: str, name: str, seed: int) -> None:
    """One run, in its own file."""
    density2d.train(RECIPES[recipe], name, seed, RESULTS / f"{recipe}-{name}-{seed}.json")


def table() -> str:
    """The table in Markdown."""
    lines = [f"| AdaNCE | {' | '.join(SETS)} | rows through the net, millions |", "|---" * (len(SETS) + 2) + "|"]
    for recipe, title in TITLES.items():
        by_set = [density2d.results(recipe, name, RESULTS) for name in SETS]
        done = [row["rows"] for rows in by_set for row in rows if "rows" in row]
        if any(by_set):
            cost = f"{statistics.mean(done) / 1e6:.1f}" if done else "–"
            lines.append(f"| {title} | {' | '.join(density2d.cell(rows) for rows in by_set)} | {cost} |")
    return "\n".join(lines) + "\n\nKL in nats; means and standard deviations of three seeds, but where a cell says."


if __name__ == "__main__":
    main()
