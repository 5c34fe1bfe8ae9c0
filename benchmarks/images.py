"""Images with convolutional energies: distance of samples during training, by recipe.

    python benchmarks/images.py --data mnist.npz --only A-K10,A-K1 [--seeds 0] [--steps 3000] [--every 500]
    python benchmarks/images.py --table

Each run trains in its own folder under ``--runs`` and can be stopped and started again. After training, checkpoints are
evaluated: the Fréchet distance of ``--n`` samples from held-out images, in the features of a classifier of the labels
(or those of ``--features``), for chains as long as in training, 2 and 4 times as long and, for the last checkpoint, 10
times as long. Each run writes a JSON file to benchmarks/results/images, and a picture of its first 64 samples.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import adance
from adance.evaluation import extract, find_extractor, frechet_distance, load_reference
from adance.plot import save_grid
from adance.training.run_folder import RunFolder

RESULTS = Path(__file__).parent / "results" / "images"
CHAIN = 30
FACTORS, LAST_FACTORS = (1, 2, 4), (1, 2, 4, 10)
LOGGED = ("gradient_norm", "ratio_temperature", "ratio_std", "effective_sample_share", "energy_data", "energy_noise")
THESIS_LOOP = {"lr": 1e-4, "betas": (0.0, 0.999), "schedule": "constant", "ema": 0.0}


def free_chains() -> adance.Langevin:
    """Chains that are not clamped to [−1, 1]."""
    return adance.Langevin(CHAIN, 1.0, 0.005)


def thesis(interval: int) -> adance.AdaNCE:
    """Algorithm 3.1: the ratio at temperature 1, fresh noise every step."""
    return adance.AdaNCE(free_chains(), interval=interval, ratio_temperature=1.0, margin=0.0, pool=0)


@dataclass(frozen=True)
class Recipe:
    """An energy for events of a shape, an objective, and the settings of the loop that differ from the default."""

    title: str
    energy: Callable[[tuple[int, ...]], nn.Module]
    objective: Callable[[], adance.AdaNCE]
    loop: dict[str, Any] = field(default_factory=dict)


RECIPES = {
    "A-K10": Recipe("A, default", adance.ConvNet, lambda: adance.AdaNCE()),
    "A-K1": Recipe("A, K = 1 in the default's loop", adance.ConvNet, lambda: adance.AdaNCE(interval=1)),
    "A-auto": Recipe("A, auto", adance.ConvNet, lambda: adance.AdaNCE(interval="auto")),
    "A-before": Recipe(
        "A, T_r = 0.005, chains not clamped",
        adance.ConvNet,
        lambda: adance.AdaNCE(free_chains(), ratio_temperature=0.005),
    ),
    "A-free": Recipe("A, chains not clamped", adance.ConvNet, lambda: adance.AdaNCE(free_chains())),
    "A-thesis-K1": Recipe("A, thesis, K = 1", adance.ConvNet, lambda: thesis(1), THESIS_LOOP),
    "A-thesis-K50": Recipe("A, thesis, K = 50", adance.ConvNet, lambda: thesis(50), THESIS_LOOP),
    "resnet": Recipe("ResNet", adance.ResNet, lambda: adance.AdaNCE(), {"lr": 3e-4}),
    "resnet-K1": Recipe("ResNet, K = 1", adance.ResNet, lambda: adance.AdaNCE(interval=1), {"lr": 3e-4}),
    "half-resnet": Recipe(
        "ResNet of half width", lambda shape: adance.ResNet(shape, width=0.5), lambda: adance.AdaNCE(), {"lr": 3e-4}
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a labeled set of images, by name or file")
    parser.add_argument("--only", default="A-K10", help=f"recipes, separated by commas: {', '.join(RECIPES)}")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--every", type=int, default=500, help="steps between evaluated checkpoints")
    parser.add_argument("--n", type=int, default=500, help="samples of each evaluation")
    parser.add_argument("--features", help="features other than the classifier's, as for adance evaluate")
    parser.add_argument("--runs", default="runs/images", help="where run folders are kept")
    parser.add_argument("--table", action="store_true", help="only print the stored results")
    args = parser.parse_args()
    torch.set_flush_denormal(True)
    if not args.table:
        for seed in args.seeds.split(","):
            for name in args.only.split(","):
                measure(name, int(seed), args)
    for path in sorted(RESULTS.glob("*.json")):
        print(table(json.loads(path.read_text(encoding="utf-8"))))


def measure(name: str, seed: int, args: argparse.Namespace) -> None:
    """Train, or continue, one run, and evaluate its checkpoints."""
    data, recipe = adance.load_data(args.data), RECIPES[name]
    label = f"{Path(args.data).stem}-{name}-{seed}"
    folder = Path(args.runs, label)
    train(recipe, data, folder, seed, args)
    rows = {row["step"]: row for row in RunFolder(folder).read_metrics()}
    extractor = find_extractor(args.features, data)
    reference = load_reference(extractor, data, "test")
    training = extract(extractor, data.batch(torch.arange(min(len(data.train), 10_000))))
    kept = {
        "name": label,
        "title": recipe.title,
        "weights": sum(weight.numel() for weight in recipe.energy(data.event_shape).parameters()),
        "features": extractor.name,
        "accuracy": getattr(extractor, "accuracy", None),
        "floor": frechet_distance(reference, training),
        "threads": torch.get_num_threads(),
        "steps": [],
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    for step in range(args.every, args.steps + 1, args.every):
        run, last = adance.load(folder, step=step), step == args.steps
        found: dict[str, float] = {}

        def look(steps: int, x: Tensor, found: dict[str, float] = found, last: bool = last) -> None:
            if steps % CHAIN == 0 and steps // CHAIN in LAST_FACTORS:
                found[str(steps)] = frechet_distance(reference, extract(extractor, x.clamp(-1, 1)))
            if last and steps == 2 * CHAIN:
                save_grid(x[:64], RESULTS / f"{label}.png")

        run.sample(args.n, steps=CHAIN * max(LAST_FACTORS if last else FACTORS), callback=look)
        logged = {key: rows[step][key] for key in ("seconds", "energy_gradients", *LOGGED) if key in rows[step]}
        kept["steps"].append({"step": step, "frechet": found, **logged})
        (RESULTS / f"{label}.json").write_text(json.dumps(kept) + "\n", encoding="utf-8")


def train(recipe: Recipe, data: adance.Dataset, folder: Path, seed: int, args: argparse.Namespace) -> None:
    """Train up to ``args.steps``, from the last checkpoint if there is one."""
    options: dict[str, Any] = {"device": "cpu", "show_progress": True}
    if (folder / "config.yaml").exists():
        adance.Trainer.resume(folder, steps=args.steps, **options).fit()
        return
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        energy = recipe.energy(data.event_shape)
    given = {"log_every": 50, "checkpoint_every": args.every, "sample_every": 0, "seed": seed, **recipe.loop}
    settings = adance.Settings(steps=args.steps, **given)
    adance.Trainer(energy, recipe.objective(), data, settings, folder, **options).fit()


def table(kept: dict[str, Any]) -> str:
    """A Markdown table of one run during training."""
    about = (
        f"{kept['name']}: {kept['title']}, {kept['weights']:,} weights, {kept['features']}; floor {kept['floor']:.2f}"
    )
    lines = [about, "", "| step | distance by chain length | gradients, M | v | T_r | spread of r | share | energies |"]
    lines.append("|---:|---|---:|---:|---:|---:|---:|---|")
    for row in kept["steps"]:
        distances = "; ".join(f"{length}: {value:.1f}" for length, value in row["frechet"].items())
        values = [f"{row['energy_gradients'] / 1e6:.2f}"]
        values += [f"{row.get(key, float('nan')):.3g}" for key in LOGGED[:4]]
        energies = f"{row['energy_data']:.0f}, {row['energy_noise']:.0f}"
        lines.append(f"| {row['step']} | {distances} | {' | '.join(values)} | {energies} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
