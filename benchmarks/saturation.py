"""How long a training step takes once the log-ratio is saturated, with and without what the library does about it.

    python benchmarks/saturation.py [--architecture A] [--width 1] [--steps 60] [--data FILE]

Trains for ``--steps`` steps on images (random strokes, or those of a file), then measures, in turn and from the same
weights, the forward and backward pass of one batch

    plain     as torch does it, with denormal numbers
    flushed   with denormal numbers taken as 0, as the command line does
    dropped   and with weights below 1e-8 of the largest set to 0
    live      and with a backward pass of only those rows that have a weight

Prints seconds (the median), the ratio to ``plain``, the share of live rows and the spread of r, and adds them to
benchmarks/results/saturation.json.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import adance
from adance.objectives import live_rows
from adance.objectives.contrastive import Contrastive
from adance.training.settings import Settings

RESULTS = Path(__file__).parent / "results" / "saturation.json"
SHAPES = {"A": (1, 28, 28), "B": (3, 32, 32), "C": (3, 32, 32), "small": (1, 8, 8)}
BATCH = 128
MODES = {  # flush, negligible share, largest share of live rows at which rows are chosen
    "plain": (False, 0.0, -1.0),
    "flushed": (True, 0.0, -1.0),
    "dropped": (True, live_rows.NEGLIGIBLE, -1.0),
    "live": (True, live_rows.NEGLIGIBLE, 1.0),
}


def strokes(n: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Images with a bright bar of random place, length and direction each, in [−1, 1]."""
    x = -torch.ones(n, *shape)
    height, width = shape[1:]
    for image in x:
        top, left = (int(torch.randint(side // 2, (), generator=generator)) for side in (height, width))
        tall, wide = (int(torch.randint(2, side // 2, (), generator=generator)) for side in (height, width))
        image[:, top : top + tall, left : left + wide] = 1
    return x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architecture", default="A", choices=SHAPES)
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--ratio_temperature", type=float, default=0.005)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--data", help="a file of images; by default random strokes")
    args = parser.parse_args()
    shape = SHAPES[args.architecture]
    generator = torch.Generator().manual_seed(0)
    if args.data:
        data = adance.load_data(args.data)
        images = data.batch(torch.arange(min(len(data.train), 5000)))
    else:
        images = strokes(2000, shape, generator)
    torch.manual_seed(0)
    energy = adance.ConvNet(shape, args.architecture, width=args.width)
    recipe = adance.AdaNCE(ratio_temperature=args.ratio_temperature)
    objective = recipe.build(energy, images, batch_size=BATCH, generator=generator)
    assert isinstance(objective, Contrastive)
    torch.set_flush_denormal(True)
    chains = train(energy, objective, images, args.steps, generator)
    x = images[torch.randint(len(images), (BATCH,), generator=generator)]
    found = {name: measure(name, energy, objective, x, args.repeats) for name in MODES}
    metrics = objective.loss(energy, x, torch.Generator().manual_seed(1)).metrics
    share = float(live_share(energy, objective, x))
    about = {
        "architecture": args.architecture,
        "width": args.width,
        "steps": args.steps,
        "threads": torch.get_num_threads(),
        "ratio_std": round(float(metrics["ratio_std"]), 1),
        "live_rows": round(share, 3),
        "chains_per_step": round(chains, 4),
        "seconds": {name: round(value, 4) for name, value in found.items()},
    }
    for name, seconds in found.items():
        print(f"{name:8} {seconds:8.4f} s   {seconds / found['plain']:6.3f}")
    print(f"chains, per training step: {chains:.4f} s; live rows {share:.1%}; spread of r {about['ratio_std']}")
    RESULTS.parent.mkdir(exist_ok=True)
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    RESULTS.write_text(json.dumps([*rows, about], indent=1) + "\n", encoding="utf-8")


def train(
    energy: torch.nn.Module, objective: Contrastive, images: Tensor, steps: int, generator: torch.Generator
) -> float:
    """Train, and return the seconds that chains took for each step."""
    settings = Settings()
    adam = torch.optim.Adam(energy.parameters(), settings.lr, settings.betas, fused=True)
    spent = 0.0
    for step in range(1, steps + 1):
        x = images[torch.randint(len(images), (BATCH,), generator=generator)]
        before, began = objective.energy_gradients, time.perf_counter()
        out = objective.loss(energy, x, generator)
        if objective.energy_gradients > before:
            sampling = time.perf_counter() - began
            again = time.perf_counter()
            objective.loss(energy, x, generator)
            spent += sampling - (time.perf_counter() - again)
        adam.zero_grad()
        out.value.backward()
        adam.step()
        objective.after_step(energy, step, out)
    return spent / steps


def measure(name: str, energy: torch.nn.Module, objective: Contrastive, x: Tensor, repeats: int) -> float:
    """Median seconds of a forward and backward pass in the mode ``name``."""
    flush, negligible, few = MODES[name]
    before = live_rows.NEGLIGIBLE, live_rows.SMALLEST, live_rows.FEW
    live_rows.NEGLIGIBLE, live_rows.FEW = negligible, few
    live_rows.SMALLEST = before[1] if negligible else 0.0
    torch.set_flush_denormal(flush)
    try:
        return statistics.median(timed(lambda: step(energy, objective, x)) for _ in range(repeats + 1))
    finally:
        live_rows.NEGLIGIBLE, live_rows.SMALLEST, live_rows.FEW = before
        torch.set_flush_denormal(True)


def step(energy: torch.nn.Module, objective: Contrastive, x: Tensor) -> None:
    energy.zero_grad()
    objective.loss(energy, x, torch.Generator().manual_seed(1)).value.backward()


def live_share(energy: torch.nn.Module, objective: Contrastive, x: Tensor) -> Tensor:
    """The share of rows that have a weight."""
    objective.rows.share.fill_(1.0)
    objective.loss(energy, x, torch.Generator().manual_seed(1))
    return (objective.rows.share - live_rows.MEMORY) / (1 - live_rows.MEMORY)


def timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
