"""How often explain finds the columns in which an outlier was displaced, and how long fits take.

    python benchmarks/explain.py columns DATA [--sets breastw,…] [--seeds 0,1]
    python benchmarks/explain.py times [--sizes 2000x10,…]
    (both: [--out benchmarks/results/explain] [--table])

columns: the detector is fitted to half of the normal rows of a set (DATA as in adbench.py); in 50 others, one or two
columns are displaced by 4 standard deviations. An outlier counts as explained if the columns with the most negative
contributions are exactly those. times: seconds and peak memory of a fit to normal rows, each in a process of its own,
and seconds to score 10,000 rows. One JSON file a run, so an interrupted study resumes.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from adance.sklearn import EnergyOutlierDetector

RESULTS = Path(__file__).parent / "results" / "explain"
SETS = "breastw,vowels,yeast,cardio,thyroid,Waveform,satellite"
SIZES = "2000x10,20000x10,20000x30,20000x60,200000x30"
OUTLIERS, SHIFT, SCORED = 50, 4.0, 10_000


def columns(data: Path, name: str, seed: int) -> dict[str, Any]:
    """Shares of outliers whose displaced columns come first, for one and for two displaced columns."""
    (path,) = data.glob(f"*_{name}.npz")
    loaded, rng = np.load(path), np.random.default_rng(seed)
    x = loaded["X"][loaded["y"].ravel() == 0].astype(float)
    x = rng.permutation(x[:, x.std(0) > 0])[:4000]
    train, others = x[: len(x) // 2], x[len(x) // 2 :][:OUTLIERS]
    spread = train.std(0)
    detector = EnergyOutlierDetector(random_state=seed).fit(train)
    found: dict[str, Any] = {"rows": len(train), "columns": x.shape[1]}
    for k in (1, 2):
        rows = others.copy()
        displaced = [set(rng.choice(x.shape[1], k, replace=False).tolist()) for _ in rows]
        for row, which in zip(rows, displaced, strict=True):
            for column in which:
                row[column] += SHIFT * spread[column] * rng.choice([-1, 1])
        first = detector.explain(rows, random_state=seed).contributions.argsort(1)[:, :k]
        hits = [set(order.tolist()) == which for order, which in zip(first, displaced, strict=True)]
        found[f"first_{k}"] = 100 * float(np.mean(hits))
    return found


def times(rows: int, width: int) -> dict[str, Any]:
    """Seconds and memory of a fit, on one core, in this process."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, width)) @ rng.normal(size=(width, width)) / np.sqrt(width)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    detector = EnergyOutlierDetector(random_state=0).fit(x)
    fitted = time.process_time()
    detector.score_samples(x[:SCORED])
    scored = time.process_time()
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {"fit_seconds": fitted - began, "score_seconds": scored - fitted, "megabytes": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("columns", "times"))
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="only the table of what is there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.table:
        (run_columns if args.study == "columns" else run_times)(args)
    frame = pd.DataFrame([json.loads(p.read_text(encoding="utf-8")) for p in sorted(args.out.glob(f"{args.study}-*"))])
    print(frame.round(2).to_string(index=False), f"\nmeans: {frame.mean(numeric_only=True).round(1).to_dict()}")


def run_columns(args: argparse.Namespace) -> None:
    for seed in map(int, args.seeds.split(",")):
        for name in args.sets.split(","):
            path = args.out / f"columns-{name}-{seed}.json"
            if not path.exists():
                found = {"set": name, "seed": seed, **columns(args.data, name, seed)}
                path.write_text(json.dumps(found) + "\n", encoding="utf-8")


def run_times(args: argparse.Namespace) -> None:
    sizes = args.sizes.split(",")
    for size in sizes:
        path, (rows, width) = args.out / f"times-{size}.json", map(int, size.split("x"))
        if path.exists():
            continue
        if len(sizes) == 1:
            found = {"rows": rows, "columns": width, **times(rows, width)}
            path.write_text(json.dumps(found) + "\n", encoding="utf-8")
        else:
            own = [sys.executable, __file__, "times", "--sizes", size, "--out", str(args.out)]
            subprocess.run(own, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
