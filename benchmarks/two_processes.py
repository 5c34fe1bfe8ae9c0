"""How much faster two processes train than one, at the same combined batch, with one thread each.

    python benchmarks/two_processes.py [--batch 128] [--first 50] [--steps 100] [--repeats 3]

Trains architecture A (1 × 28 × 28) by AdaNCE with K = 10 on random images, in one process with ``--batch`` rows and in
two with half of them each, in turn. Measures steps per second over the ``--steps`` steps after the ``--first``, which
are a multiple of K. Needs two idle cores. Prints the rates and their ratio (medians), and adds them to
benchmarks/results/two-processes.json. The aim is a ratio of 1.7.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import adance
from adance.data import Dataset, ImageScale

RESULTS = Path(__file__).parent / "results" / "two-processes.json"
SHAPE = (1, 28, 28)


def images() -> Dataset:
    """Random images, which cost as much as real ones."""
    x = torch.randint(256, (1000, *SHAPE), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    return Dataset("random", "image", x[:900], x[900:], ImageScale(0, 255, 256, 784))


def train(folder: str, rows: int, first: int, steps: int) -> None:
    """Train in this process, which may be one of several."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    total = first + steps
    settings = adance.Settings(steps=total, batch_size=rows, log_every=first, checkpoint_every=10 * total)
    energy = adance.ConvNet(SHAPE, "A")
    adance.Trainer(
        energy, adance.AdaNCE(interval=10), images(), settings, folder, device="cpu", show_progress=False
    ).fit()


def rate(processes: int, batch: int, first: int, steps: int) -> float:
    """Steps per second after the ``first``."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [f"{folder}/run", str(batch // processes), str(first), str(steps)]
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
        command = [sys.executable, *launcher, __file__, "--train", *arguments]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        rows = [
            json.loads(line) for line in Path(folder, "run", "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        ]
    seconds = {row["step"]: row["seconds"] for row in rows}
    return steps / (seconds[first + steps] - seconds[first])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--first", type=int, default=50)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--train", nargs=4, metavar=("FOLDER", "ROWS", "FIRST", "STEPS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.train:
        train(args.train[0], *map(int, args.train[1:]))
        return
    rates: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(args.repeats):
        for processes, found in rates.items():
            found.append(rate(processes, args.batch, args.first, args.steps))
    one, two = (statistics.median(found) for found in rates.values())
    row = {"batch": args.batch, "first": args.first, "steps": args.steps, "one": one, "two": two, "ratio": two / one}
    print(json.dumps(row))
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    RESULTS.write_text(json.dumps([*rows, row], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
