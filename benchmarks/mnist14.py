"""MNIST at 14 × 14: the mean of every 2 × 2 pixels, rounded to whole bytes, in an .npz file with labels.

    python benchmarks/mnist14.py [--data mnist|FILE.npz] [--out mnist14.npz]

``mnist`` is fetched from the Hugging Face hub; a file has x_train, y_train, x_test, y_test of 28 × 28 bytes.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

import adance


def write_mnist14(source: str, out: Path) -> Path:
    """Write the averaged images of ``source`` to ``out``, unless that is there already."""
    if not out.exists():
        data = adance.load_data(source)
        if data.event_shape != (1, 28, 28) or data.train_labels is None:
            raise SystemExit(f"{source} has events of {data.event_shape}: MNIST's are labeled and (1, 28, 28)")
        arrays = {}
        for split, labels in (("train", data.train_labels), ("test", data.test_labels)):
            rows = torch.arange(len(labels))
            averaged = [avg_pool2d(as_bytes(data.batch(part, split)), 2)[:, 0].round() for part in rows.split(1000)]
            arrays |= {f"x_{split}": torch.cat(averaged).byte().numpy(), f"y_{split}": labels.byte().numpy()}
        out.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(out, **arrays)
    return out


def as_bytes(x: Tensor) -> Tensor:
    """Images in [−1, 1] as the whole numbers 0 to 255 that they were."""
    return ((x + 1) * 127.5).round()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mnist", help="mnist, or a file of it")
    parser.add_argument("--out", type=Path, default=Path("mnist14.npz"))
    args = parser.parse_args()
    print(write_mnist14(args.data, args.out))


if __name__ == "__main__":
    main()
