"""The Fréchet distance of real CIFAR-10 images to others, by any feature file: a floor, and how long it takes.

    python benchmarks/frechet_cifar10.py CIFAR10.npz FEATURES.pt [--name Lite0] [--n 2000]

CIFAR10.npz holds x_train and x_test, images (N, 32, 32, 3) of bytes; FEATURES.pt is TorchScript, from images
(B, 3, H, W) in [−1, 1] to features (B, d). Compares the first n training images with the first
n test images, and prints one line of JSON.
"""

import argparse
import json
import time
from pathlib import Path

import torch

import adance
from adance.evaluation import frechet_distance, kernel_distance, precision_and_recall
from adance.evaluation.extractor import extract
from adance.evaluation.find_extractor import find_extractor
from adance.evaluation.reference import Reference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", help="the .npz file of images")
    parser.add_argument("features", help="the TorchScript file")
    parser.add_argument("--name", help="what to call its features; by default the file's name")
    parser.add_argument("--n", type=int, default=2000, help="images on each side")
    args = parser.parse_args()

    data = adance.load_data(args.images)
    extractor = find_extractor(str(Path(args.features)), data, name=args.name)
    began, cpu = time.monotonic(), time.process_time()
    rows = torch.arange(args.n)
    real, other = (data.batch(rows, split) for split in ("train", "test"))
    reference = Reference.of(extract(extractor, real))
    features = extract(extractor, other)
    extracted = time.monotonic()
    distance, kernel = frechet_distance(reference, features), kernel_distance(reference, features)
    precision, recall = precision_and_recall(reference.rows, features)
    print(
        json.dumps(
            {
                "name": extractor.distance_name,
                "n": args.n,
                "features": features.shape[1],
                "distance": round(distance, 3),
                "kernel_distance": [round(value, 5) for value in kernel],
                "precision": precision,
                "recall": recall,
                "seconds_features": round(extracted - began, 1),
                "seconds": round(time.monotonic() - began, 1),
                "cpu_seconds": round(time.process_time() - cpu, 1),
            },
            ensure_ascii=False,
        )
    )


if __name__ == "__main__":
    main()
