"""Scikit-learn's handwritten digits: real images that need no download."""

import torch

from adance.data.splits import Splits
from adance.data.transforms import ImageScale


def load_digits() -> Splits:
    """The 1,797 digits, 8 x 8 pixels with whole values 0..16: 1,400 to train on and 397 held out.

    The split never changes: it is the permutation of seed 0.
    """
    from sklearn.datasets import load_digits as bunch

    digits = bunch()
    images = torch.from_numpy(digits.images).to(torch.uint8)[:, None]
    labels = torch.from_numpy(digits.target).to(torch.int64)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    train, test = order[:1400], order[1400:]
    return Splits(
        name="digits",
        kind="image",
        train=images[train],
        test=images[test],
        train_labels=labels[train],
        test_labels=labels[test],
        transform=ImageScale(0.0, 16.0, 17, 64),
    )
