"""How good are digits drawn by the default run? The Fréchet distance in a small classifier's features.

    python benchmarks/digits.py [--run RUN] [--seeds 0,1,2] [options of adance train]

Trains the default run on scikit-learn's 8×8 digits (or takes a finished one), draws 1,000 samples as ``adance sample``
does, and prints their distance to the 397 held-out digits in the 32 features of a classifier, the floor (training
digits to held-out ones), and how many samples the classifier puts in each class. One JSON file a run is kept in
benchmarks/results, and a run that is there already is not trained again.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import adance
from adance.cli import main as command

RESULTS = Path(__file__).parent / "results"


def classifier(x: Tensor, y: Tensor) -> nn.Sequential:
    """A small network that tells the digits ``x`` ``(N, 64)`` apart; its fourth layer gives 32 features."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 10))
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
        for _ in range(1500):
            rows = torch.randint(0, len(x), (128,))
            loss = F.cross_entropy(net(x[rows] + 0.1 * torch.randn(128, 64)), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return net.eval().requires_grad_(False)


def frechet(a: Tensor, b: Tensor) -> float:
    """Fréchet distance of two sets of features ``(N, D)`` in float64."""
    mean = (a.mean(0) - b.mean(0)).square().sum()
    cov_a, cov_b = torch.cov(a.T), torch.cov(b.T)
    roots = torch.linalg.eigvals(cov_a @ cov_b).real.clamp(min=0).sqrt().sum()
    return float(mean + cov_a.trace() + cov_b.trace() - 2 * roots)


class DigitJudge:
    """Measures samples of 8×8 digits ``(N, 1, 8, 8)`` in [−1, 1] against the held-out ones."""

    def __init__(self) -> None:
        data = adance.load_data("digits")
        train, test = (data.batch(torch.arange(n), split).flatten(1) for split, n in (("train", 1400), ("test", 397)))
        self.net = classifier(train, data.train_labels)
        self.target = self.features(test)
        self.floor = frechet(self.features(train), self.target)

    def features(self, x: Tensor) -> Tensor:
        """The classifier's 32 features ``(N, 32)`` of digits ``(N, 64)``, float64."""
        return self.net[:4](x).double()

    def measure(self, samples: Tensor) -> dict[str, object]:
        """Distance to the held-out digits, and samples in each class."""
        x = samples.flatten(1).clamp(-1, 1)
        classes = torch.bincount(self.net(x).argmax(1), minlength=10).tolist()
        return {"frechet": frechet(self.features(x), self.target), "classes": classes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", help="a finished run, instead of training")
    parser.add_argument("--seeds", default="0", help="seeds to train, by commas")
    args, options = parser.parse_known_args()
    judge = DigitJudge()
    print(f"floor {judge.floor:.2f}")
    if args.run:
        report(judge, adance.load(args.run), args.run)
        return
    RESULTS.mkdir(exist_ok=True)
    for seed in args.seeds.split(","):
        name = "-".join(["digits", *(o.strip("-").replace("/", "_") for o in options), f"seed{seed}"])
        kept = RESULTS / f"{name}.json"
        if not kept.exists():
            with tempfile.TemporaryDirectory() as folder:
                began = time.monotonic()
                status = command(["train", "--seed", seed, "--out", folder + "/run", *options])
                if status:
                    sys.exit(status)
                result = report(judge, adance.load(folder + "/run"), name)
                kept.write_text(json.dumps({**result, "seconds": time.monotonic() - began}) + "\n")
        else:
            print(f"{name}: {kept.read_text().strip()}")


def report(judge: DigitJudge, run: adance.Run, name: str) -> dict[str, object]:
    result = judge.measure(run.sample(1000))
    print(f"{name}: frechet {result['frechet']:.2f} (floor {judge.floor:.2f}), classes {result['classes']}", flush=True)
    return result


if __name__ == "__main__":
    main()
