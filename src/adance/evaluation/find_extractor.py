"""Find a feature extractor by its name or path."""

import torch

from adance.data.dataset import Dataset
from adance.errors import InputError
from adance.evaluation.classifier import Classifier
from adance.evaluation.extractor import Extractor, Pixels, TorchScriptExtractor
from adance.evaluation.inception import Inception

NAMES = ("inception", "classifier", "pixels")


def find_extractor(
    features: str | None, data: Dataset, *, name: str | None = None, seed: int = 0, device: str = "cpu"
) -> Extractor:
    """The extractor ``inception``, ``classifier``, ``pixels``, or of the TorchScript file at a path.

    Args:
        features: Name or path; by default ``classifier`` if the data have labels, else ``pixels``.
        data: The data that are measured.
        name: What to call a file's features instead of its own name.
        seed: Seed of the classifier.
        device: Where networks run.

    Raises:
        InputError: There is no such extractor, it does not fit these data, or ``name`` belongs to another.
    """
    if features is None:
        labeled = data.train_labels is not None and len(torch.unique(data.train_labels)) > 1
        features = "classifier" if labeled else "pixels"
    if name is not None and features in NAMES:
        raise InputError(f"--features_name is for features from a file; {features} already has a name")
    if name is not None and name.lower() in (*NAMES, "fid"):
        raise InputError(f"--features_name {name}: this name is taken by other features; choose another")
    if features == "classifier":
        return Classifier(data, seed)
    if features == "pixels":
        return Pixels()
    if features == "inception":
        if data.kind != "image":
            raise InputError(f"--features inception is for images; {data.name} has vectors")
        return Inception(device)
    return TorchScriptExtractor(features, data.event_shape, name, device)
