"""Posteriors of ten simulators, compared with reference samples by a classifier (C2ST), next to published methods.

    pip download --no-deps sbibm && unzip sbibm-*.whl -d sbibm-wheel
    python benchmarks/sbi.py run --files sbibm-wheel/sbibm/tasks --tasks two_moons slcp --observations 1 2 3
    python benchmarks/sbi.py run --files sbibm-wheel/sbibm/tasks --tasks two_moons --observations 1 2 --rounds 2
    python benchmarks/sbi.py coverage --files sbibm-wheel/sbibm/tasks --tasks two_moons slcp
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
import warnings
from pathlib import Path

import numpy as np
import torch
from sbi_tasks import NAMES, Task, task
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from torch import Tensor

from adance.contrasts import Logistic
from adance.sbi import PosteriorEnergy, calibrate

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


def setting_of(args: argparse.Namespace) -> str:
    return args.setting if args.rounds == 1 else f"{args.setting} in {args.rounds} rounds"


def result_file(name: str, observation: int, args: argparse.Namespace) -> Path:
    setting = setting_of(args).replace(" ", "-")
    return RESULTS / f"{name}-{setting}-{observation}-{args.seed}-{args.samples}.json"


def run_task(one: Task, args: argparse.Namespace) -> None:
    """Sample and score each observation without a result, after one fit; with several rounds, after a fit for each."""
    todo = [number for number in args.observations if not result_file(one.name, number, args).exists()]
    generator = torch.Generator().manual_seed(args.seed)
    if todo and args.rounds == 1:
        began = Clock()
        posterior, took = fit(one, args, generator), began.seconds()
        for number in todo:
            score(one, number, args, posterior, took)
    elif todo:
        for number in todo:
            began = Clock()
            posterior = fit_in_rounds(one, number, args, generator)
            score(one, number, args, posterior, began.seconds())


def fit(one: Task, args: argparse.Namespace, generator: torch.Generator) -> PosteriorEnergy:
    """The amortized posterior, with all simulations from the prior."""
    posterior = PosteriorEnergy(one.prior, seed=args.seed, **SETTINGS[args.setting])
    theta = posterior.prior.sample(args.simulations, generator)
    return posterior.fit(theta, one.simulate(theta, generator))


def fit_in_rounds(one: Task, number: int, args: argparse.Namespace, generator: torch.Generator) -> PosteriorEnergy:
    """The posterior of one observation: each round simulates from the posterior of the previous round."""
    posterior = PosteriorEnergy(one.prior, seed=args.seed, **SETTINGS[args.setting])
    share = args.simulations // args.rounds
    theta = posterior.prior.sample(share, generator)
    posterior.fit(theta, one.simulate(theta, generator))
    for _ in range(args.rounds - 1):
        theta = posterior.sample(share, one.observation(number)[0], seed=args.seed)
        posterior.append_simulations(theta, one.simulate(theta, generator))
    return posterior


def score(one: Task, number: int, args: argparse.Namespace, posterior: PosteriorEnergy, fit_time: dict) -> None:
    """Sample the posterior of an observation, compare it with the reference, and write the result.

    Args:
        fit_time: Wall and CPU seconds of the simulations and the fit.
    """
    assert posterior.model is not None
    data, reference = one.observation(number)
    began = Clock()
    chains = posterior.chains(args.samples, data)
    found = posterior.prior.to_theta(chains.u[0])[: args.samples]
    result = {
        "task": one.name,
        "setting": setting_of(args),
        "observation": number,
        "seed": args.seed,
        "simulations": args.simulations,
        "samples": args.samples,
        "sample_cpu_seconds": began.seconds()["cpu"],
        "fit_seconds": fit_time["wall"],
        "fit_cpu_seconds": fit_time["cpu"],
        "steps": posterior.model.history.steps,
        "losses": posterior.model.history.losses,
        "disagreement": float(chains.disagreement[0]),
        "acceptance": chains.acceptance,
        "c2st": c2st(reference[: args.samples], found),
        "machine": platform.processor() or platform.machine(),
    }
    result_file(one.name, number, args).write_text(json.dumps(result, indent=1), encoding="utf-8")
    print(f"{one.name} {setting_of(args)} observation {number} seed {args.seed}: {result['c2st']:.3f}", flush=True)


def run_coverage(one: Task, args: argparse.Namespace) -> None:
    """Fit, compare new parameters with the posteriors of their data, and write the result."""
    kept = RESULTS / "coverage" / f"{one.name}-{args.setting}-{args.seed}-{args.rows}.json"
    if kept.exists():
        return
    generator = torch.Generator().manual_seed(args.seed)
    posterior = fit(one, args, generator)
    theta = posterior.prior.sample(args.rows, generator)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check = calibrate(posterior, theta, one.simulate(theta, generator))
    result = {
        "task": one.name,
        "setting": args.setting,
        "seed": args.seed,
        "simulations": args.simulations,
        "levels": check.levels.tolist(),
        "excess": check.excess,
        "excess_error": check.excess_error,
        "warnings": [str(warning.message) for warning in caught],
    }
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps(result, indent=1), encoding="utf-8")
    print(f"{one.name} {args.setting} seed {args.seed}: {check.verdict}", flush=True)


class Clock:
    """Wall and CPU time since its creation."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def seconds(self) -> dict[str, float]:
        """Wall and CPU seconds since the clock was created."""
        return {"wall": time.perf_counter() - self.wall, "cpu": time.process_time() - self.cpu}


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
    coverage = commands.add_parser("coverage", help="fit, and measure the expected coverage")
    for command in (run, coverage):
        command.add_argument("--files", type=Path, required=True, help="the folder sbibm/tasks of the wheel")
        command.add_argument("--tasks", nargs="+", choices=NAMES, default=NAMES)
        command.add_argument("--setting", choices=SETTINGS, default="perturbed")
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--simulations", type=int, default=10_000)
    run.add_argument("--observations", nargs="+", type=int, default=[1, 2, 3])
    run.add_argument("--rounds", type=int, default=1, help="number of rounds; from the second on, at the observation")
    run.add_argument("--samples", type=int, default=10_000)
    coverage.add_argument("--rows", type=int, default=200, help="number of new simulations")
    show = commands.add_parser("table", help="print the results as a table")
    show.add_argument("--published", type=Path, help="published scores by task and observation")
    args = parser.parse_args()
    if args.command == "table":
        table(args.published)
        return
    torch.set_flush_denormal(True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    work = run_task if args.command == "run" else run_coverage
    for name in args.tasks:
        work(task(name, args.files), args)


if __name__ == "__main__":
    main()
