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
from torch import Tensor

import adance
from adance.cli import main as command
from adance.data import Dataset
from adance.evaluation import classify, extract, find_extractor, frechet_distance, load_reference

RESULTS = Path(__file__).parent / "results"


class Judge:
    """Measures samples ``(N, C, H, W)`` in [−1, 1] against the held-out images of ``data``, which have labels."""

    def __init__(self, data: Dataset) -> None:
        self.classifier = find_extractor("classifier", data)
        self.target = load_reference(self.classifier, data, "test")
        training = data.batch(torch.arange(min(len(data.train), 10_000)))
        self.floor = frechet_distance(self.target, extract(self.classifier, training))

    def measure(self, samples: Tensor) -> dict[str, object]:
        """Distance to the held-out images, and samples in each class."""
        x = samples.clamp(-1, 1)
        classes = torch.bincount(classify(self.classifier, x).argmax(1), minlength=10).tolist()
        return {"frechet": frechet_distance(self.target, extract(self.classifier, x)), "classes": classes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", help="a finished run, instead of training")
    parser.add_argument("--seeds", default="0", help="seeds to train, by commas")
    args, options = parser.parse_known_args()
    judge = Judge(adance.load_data("digits"))
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
                kept.write_text(json.dumps({**result, "seconds": time.monotonic() - began}) + "\n", encoding="utf-8")
        else:
            print(f"{name}: {kept.read_text(encoding='utf-8').strip()}")


def report(judge: Judge, run: adance.Run, name: str) -> dict[str, object]:
    result = judge.measure(run.sample(1000))
    print(f"{name}: frechet {result['frechet']:.2f} (floor {judge.floor:.2f}), classes {result['classes']}", flush=True)
    return result


if __name__ == "__main__":
    main()
