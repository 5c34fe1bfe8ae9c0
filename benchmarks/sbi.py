"""Posteriors of ten simulators, compared with reference samples by a classifier (C2ST), next to published methods.

    pip download --no-deps sbibm && unzip sbibm-*.whl -d sbibm-wheel
    python benchmarks/sbi.py run --files sbibm-wheel/sbibm/tasks --tasks two_moons slcp --observations 1 2 3
    python benchmarks/sbi.py table --published sbibm-scores.csv

One result file for each task, setting, observation and seed, so that a run can be stopped and continued. The score is
that of the benchmark (Lueckmann et al. 2021): 0.5 if samples cannot be distinguished from the
reference, 1 if they always can.
``--published`` is a table with the columns task, num_observation and one for each method.
"""

import argparse
import csv
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch
from sbi_tasks import NAMES, Task, task
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from torch import Tensor

from adance.contrasts import Logistic
from adance.sbi import PosteriorEnergy

RESULTS = Path(__file__).parent / "results" / "sbi"
SETTINGS = {
    "perturbed": {},
    "shuffled": {"noise": "shuffled"},
    "nre-a": {"noise": "shuffled", "contrast": Logistic()},
    "snapshot": {"noise": "snapshot"},
}


def c2st(reference: Tensor, samples: Tensor, seed: int = 1) -> float:
    """Accuracy of a classifier of two sets ``(N, d)``: two layers of 10·d units, five folds, in units of the first."""
    mean, std = reference.mean(0), reference.std(0)
    rows = torch.cat([(reference - mean) / std, (samples - mean) / std]).numpy()
    labels = np.repeat([0.0, 1.0], [len(reference), len(samples)])
    width = 10 * rows.shape[1]
    network = MLPClassifier((width, width), max_iter=10000, random_state=seed)
    folds = KFold(5, shuffle=True, random_state=seed)
    return float(cross_val_score(network, rows, labels, cv=folds, scoring="accuracy").mean())


def result_file(name: str, setting: str, observation: int, seed: int, samples: int) -> Path:
    return RESULTS / f"{name}-{setting}-{observation}-{seed}-{samples}.json"


def run_task(one: Task, setting: str, observations: list[int], seed: int, n: int, samples: int) -> None:
    """Fit once, then sample and score each observation that has no result yet."""
    todo = [number for number in observations if not result_file(one.name, setting, number, seed, samples).exists()]
    if not todo:
        return
    generator = torch.Generator().manual_seed(seed)
    posterior = PosteriorEnergy(one.prior, seed=seed, **SETTINGS[setting])
    theta = posterior.prior.sample(n, generator)
    x = one.simulate(theta, generator)
    began, began_cpu = time.perf_counter(), time.process_time()
    posterior.fit(theta, x)
    fit_seconds, fit_cpu = time.perf_counter() - began, time.process_time() - began_cpu
    assert posterior.model is not None
    for number in todo:
        data, reference = one.observation(number)
        began_cpu = time.process_time()
        chains = posterior.chains(samples, data)
        found = posterior.prior.to_theta(chains.u[0])[:samples]
        result = {
            "task": one.name,
            "setting": setting,
            "observation": number,
            "seed": seed,
            "simulations": n,
            "samples": samples,
            "sample_cpu_seconds": time.process_time() - began_cpu,
            "fit_seconds": fit_seconds,
            "fit_cpu_seconds": fit_cpu,
            "steps": posterior.model.history.steps,
            "losses": posterior.model.history.losses,
            "disagreement": float(chains.disagreement[0]),
            "acceptance": chains.acceptance,
            "c2st": c2st(reference[:samples], found),
            "machine": platform.processor() or platform.machine(),
        }
        result_file(one.name, setting, number, seed, samples).write_text(json.dumps(result, indent=1), encoding="utf-8")
        print(f"{one.name} {setting} observation {number} seed {seed}: {result['c2st']:.3f}", flush=True)


def read_results() -> list[dict]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]


def table(published: Path | None) -> None:
    """Print the mean score of each task and setting, next to those of published methods on the same observations."""
    results = read_results()
    scores: dict[tuple[str, int], dict[str, float]] = {}
    if published is not None:
        with published.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                key = row.pop("task"), int(row.pop("num_observation"))
                scores[key] = {method: float(value) for method, value in row.items()}
    methods = list(next(iter(scores.values()), {}))
    kinds = sorted({(result["setting"], result["samples"]) for result in results})
    print("| task | setting | samples | observations | seeds | C2ST |", " | ".join(methods), "|")
    print("|---|---|---|---|---|---|" + "---|" * len(methods))
    for setting, samples in kinds:
        rows = []
        for name in NAMES:
            of = [r for r in results if (r["task"], r["setting"], r["samples"]) == (name, setting, samples)]
            if not of:
                continue
            numbers = sorted({result["observation"] for result in of})
            by_number = [np.mean([r["c2st"] for r in of if r["observation"] == number]) for number in numbers]
            theirs = [np.mean([scores[name, number][method] for number in numbers]) for method in methods]
            rows.append([float(np.mean(by_number)), *theirs])
            seeds = len({result["seed"] for result in of})
            cells = " | ".join(f"{value:.3f}" for value in rows[-1])
            print(f"| {name} | {setting} | {samples} | {','.join(map(str, numbers))} | {seeds} | {cells} |")
        print(
            f"| mean of {len(rows)} tasks | {setting} | {samples} | | |",
            " | ".join(f"{v:.3f}" for v in np.mean(rows, 0)),
            "|",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    run = commands.add_parser("run", help="fit, sample and score")
    run.add_argument("--files", type=Path, required=True, help="the folder sbibm/tasks of the wheel")
    run.add_argument("--tasks", nargs="+", choices=NAMES, default=NAMES)
    run.add_argument("--setting", choices=SETTINGS, default="perturbed")
    run.add_argument("--observations", nargs="+", type=int, default=[1, 2, 3])
    run.add_argument("--seed", type=int, default=0)
    run.add_argument("--simulations", type=int, default=10_000)
    run.add_argument("--samples", type=int, default=10_000)
    show = commands.add_parser("table", help="print the results as a table")
    show.add_argument("--published", type=Path, help="published scores by task and observation")
    args = parser.parse_args()
    if args.command == "table":
        table(args.published)
        return
    torch.set_flush_denormal(True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in args.tasks:
        one = task(name, args.files)
        run_task(one, args.setting, args.observations, args.seed, args.simulations, args.samples)


if __name__ == "__main__":
    main()
