"""The thesis's table 5.2 and figures 3.1 to 3.3 and 5.3: what K, rejuvenation and spectral normalization do.

    python benchmarks/thesis.py --scale small      # digits and MNIST at 14 × 14, two CPU cores
    python benchmarks/thesis.py --scale full       # MNIST, CIFAR-10 and CelebA as in configs/thesis, a GPU

Small: AdaNCE as the thesis has it (ratio at temperature 1, no margin, fresh noise every step) at K = 1, 5, 10, 20, 50
and, for comparison, the library's defaults at the same K; Fréchet distances of 1,000 samples to the held-out images in
the features of benchmarks/digits.py; on digits, long-run samples at five rejuvenation rates; and the gradient norm v
with and without spectral normalization. Started again, it resumes where it stopped: run folders are in --out, with
what was measured of each. Tables go into docs/thesis.md and figures into docs/images. Full: the same sweeps
with the configs' own data, measured by ``adance evaluate``, with tables and pages left in --out.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import digits
import thesis_figures as figures
import yaml
from mnist14 import write_mnist14

import adance
from adance.cli import main as command
from adance.sweeps import SweepFolder

ROOT = Path(__file__).parent.parent
INTERVALS = (1, 5, 10, 20, 50)
REJUVENATIONS = ("0.5", "1.0")
CHAIN = {"class_path": "adance.Langevin", "init_args": {"steps": 30, "step_size": 1.0, "noise_std": 0.005}}
THESIS = {"sampler": CHAIN, "ratio_temperature": 1.0, "margin": 0.0, "pool": 0, "buffer": 5000}
THESIS_LOOP: dict[str, object] = {"betas": [0.0, 0.999], "ema": 0.0}
RATES = (0.0, 0.25, 0.5, 0.75, 1.0)
SMALL_STEPS = {"digits": 6000, "mnist14": 3000}
NORM_STEPS, RATE_STEPS = 2000, 1500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=("small", "full"), default="small")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "thesis", help="where the sweeps go")
    parser.add_argument("--seeds", default="0", help="seeds, by commas")
    parser.add_argument("--jobs", default="2", help="runs at a time")
    parser.add_argument("--mnist", default="mnist", help="MNIST for the small scale: its name on the hub, or a file")
    parser.add_argument("--steps", type=int, help="steps of the small runs of the tables, instead of their own")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where table and figures go")
    args = parser.parse_args()
    (small if args.scale == "small" else full)(args)


def small(args: argparse.Namespace) -> None:
    """Train all, measure, draw."""
    mnist14 = str(write_mnist14(args.mnist, args.out / "mnist14.npz"))
    intervals(args, "digits", "digits")
    intervals(args, "mnist14", mnist14)
    norms(args)
    rejuvenation(args)


def intervals(args: argparse.Namespace, name: str, data: str) -> None:
    """Table 5.2 and figure 5.3 on one data set: the thesis's recipe and the default over K."""
    steps, seeds = args.steps or SMALL_STEPS[name], f"seed={args.seeds}"
    thesis = config(args, f"{name}-thesis", data, steps, {**THESIS}, **THESIS_LOOP)
    sweep(args, thesis, over("objective.interval", INTERVALS), seeds)
    # at K = 1 both are maximum likelihood: r is 0 at any temperature
    default = config(args, f"{name}-default", data, steps, {})
    sweep(args, default, over("objective.interval", INTERVALS[1:]), seeds)
    judge = digits.Judge(adance.load_data(data))
    results = {recipe: measured(args.out / f"{name}-{recipe}", judge) for recipe in ("thesis", "default")}
    figures.draw_intervals(args.docs / "images" / f"thesis-interval-{name}.png", args.out, name, results, INTERVALS)
    text = figures.interval_table(results, INTERVALS, judge.floor)
    print(f"{name}\n{text}")
    figures.put_between_markers(args.docs / "thesis.md", text, figures.BEGIN.format(name))


def norms(args: argparse.Namespace) -> None:
    """Figures 3.2 and 3.3: the gradient norm v, without and with spectral normalization."""
    # a small convolutional net at ten times the learning rate shows early what large ones show late
    faster = {"energy": {"class_path": "adance.ConvNet"}, "lr": 1e-3, "log_every": 10}
    file = config(args, "norms", "digits", NORM_STEPS, {**THESIS, "interval": 1}, **THESIS_LOOP, **faster)
    sweep(args, file, "energy.spectral_norm=false,true", over("objective.rejuvenation", REJUVENATIONS))
    figures.draw_norms(args.docs / "images" / "thesis-norm.png", SweepFolder(args.out / "norms"))


def rejuvenation(args: argparse.Namespace) -> None:
    """Figure 3.1: the model at every rejuvenation rate R, and where long chains of it lead."""
    rates = config(args, "rejuvenation", "digits", RATE_STEPS, {**THESIS, "interval": 1}, **THESIS_LOOP)
    sweep(args, rates, over("objective.rejuvenation", RATES))
    figures.draw_long_runs(args.docs / "images" / "thesis-long-run.png", SweepFolder(args.out / "rejuvenation"))


def full(args: argparse.Namespace) -> None:
    """The configs of the thesis, each over K, evaluated and drawn by the library's own commands."""
    for name in ("mnist", "cifar10", "celeba"):
        file = ROOT / "configs" / "thesis" / f"{name}.yaml"
        options = ["--jobs", "1", "--evaluate", "FID,inception", "--evaluate_with", "--features inception"]
        sweep(args, file, over("objective.interval", INTERVALS), f"seed={args.seeds}", options=options, name=name)
        command(["report", str(args.out / name)])
    options = ["--jobs", "1", "--steps", "5000", "--log_every", "10", "--sample_every", "0"]
    over_rejuvenation = over("objective.rejuvenation", REJUVENATIONS)
    file = ROOT / "configs" / "thesis" / "mnist.yaml"
    sweep(args, file, "energy.spectral_norm=true,false", over_rejuvenation, options=options, name="norms")
    figures.draw_norms(args.out / "thesis-norm.png", SweepFolder(args.out / "norms"))


def config(
    args: argparse.Namespace, name: str, data: str, steps: int, objective: dict[str, object], **settings: object
) -> Path:
    """Write the config of a sweep."""
    held = {
        "data": data,
        "objective": {"class_path": "adance.AdaNCE", "init_args": objective},
        "steps": steps,
        "sample_every": 0,
        **settings,
    }
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{name}.yaml"
    path.write_text(yaml.safe_dump(held, sort_keys=False), encoding="utf-8")
    return path


def over(key: str, values: Iterable[object]) -> str:
    return f"{key}={','.join(map(str, values))}"


def sweep(
    args: argparse.Namespace, file: Path, *axes: str, options: Iterable[str] | None = None, name: str | None = None
) -> None:
    """Train what is not trained yet; a run that diverges is part of the picture and does not end the script."""
    more = ["--jobs", args.jobs, "--device", "cpu"] if options is None else list(options)
    varied = [part for axis in axes for part in ("--over", axis)]
    status = command(["sweep", "--config", str(file), "--out", str(args.out / (name or file.stem)), *varied, *more])
    if status not in (0, 3):
        raise SystemExit(status)


def measured(folder: Path, judge: digits.Judge) -> dict[int, list[dict[str, object]]]:
    """For each K, the metrics of its runs: those kept with them, or else measured now."""
    found: dict[int, list[dict[str, object]]] = {}
    for outcome in SweepFolder(folder).outcomes():
        kept = folder / outcome.name / "measured.json"
        if outcome.status == "done" and not kept.exists():
            result = judge.measure(adance.load(folder / outcome.name).sample(1000))
            numbers = {name: outcome.metrics[name] for name in ("step", "seconds", "energy_gradients")}
            kept.write_text(json.dumps({**result, **numbers, "values": outcome.values}) + "\n", encoding="utf-8")
        if kept.exists():
            interval = int(outcome.values["objective.interval"])
            found.setdefault(interval, []).append(json.loads(kept.read_text(encoding="utf-8")))
    return found


if __name__ == "__main__":
    main()
