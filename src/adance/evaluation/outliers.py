"""Outlier detection: how well −E distinguishes held-out data from what is not data (AUROC)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.energies.analytic import Gaussian, Uniform
from adance.evaluation.measurement import Measurement
from adance.training.run import Run

TRAINING = "training rows"
TRAINING_NOTE = "0.5 says that training rows are not distinguished from held-out ones"


def auroc(inside: Tensor, outside: Tensor) -> float:
    """``P(E(outlier) > E(datum)) + ½P(equal)``, from energies ``(n,)`` and ``(m,)``; 0.5 is chance, 1 perfect.

    An energy that is ``nan`` counts as infinite.
    """
    from sklearn.metrics import roc_auc_score

    energies = torch.cat([inside, outside]).double().nan_to_num(nan=torch.finfo(torch.float64).max)
    return float(roc_auc_score(torch.arange(len(energies)) >= len(inside), energies.cpu()))


def measure_outliers(
    run: Run, data: Dataset, given: Mapping[str, Tensor] | None = None, *, n: int = 1000, seed: int = 0
) -> list[Measurement]:
    """AUROC of −E for held-out data against noise, interpolations, training rows, and the sets that are given.

    *Noise* is uniform on [−1, 1] for images and the fitted normal distribution for vectors. *Interpolations* are
    half-way between two held-out rows of different classes (any two, without labels). *Training rows* are not outliers:
    0.5 means that the model does not distinguish them from held-out rows.

    Args:
        run: The run.
        data: The run's data.
        given: Outlier sets ``(N, *event)`` by name, in the model's units.
        n: Largest number of rows of each set.
        seed: Seed of the noise and of the choice of rows.
    """
    generator = torch.Generator().manual_seed(seed)
    inside = data.batch(_some(len(data.test), n, generator), "test")
    sets = {name: rows[_some(len(rows), n, generator)] for name, rows in (given or {}).items()}
    sets["interpolations"] = _interpolations(data, n, generator)
    sets["noise"] = _noise(data, n, generator)
    sets[TRAINING] = data.batch(_some(len(data.train), n, generator))
    energies = run.score(inside)
    measure = partial(Measurement, "outliers", "auroc", split="test", n_reference=len(inside), seed=seed)
    found = []
    for name, x in sets.items():
        about: dict[str, Any] = {"note": TRAINING_NOTE} if name == TRAINING else {"better": "higher"}
        found.append(measure(f"AUROC of −E, {name}", auroc(energies, run.score(x)), samples=name, n=len(x), **about))
    return found


def _some(size: int, n: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(size, generator=generator)[:n]


def _interpolations(data: Dataset, n: int, generator: torch.Generator) -> Tensor:
    first, second = (torch.randint(len(data.test), (20 * n,), generator=generator) for _ in range(2))
    apart = first != second if data.test_labels is None else data.test_labels[first] != data.test_labels[second]
    if not apart.any():
        apart = first != second
    rows = apart.nonzero().flatten()[:n]
    return (data.batch(first[rows], "test") + data.batch(second[rows], "test")) / 2


def _noise(data: Dataset, n: int, generator: torch.Generator) -> Tensor:
    if data.kind == "image":
        return Uniform(data.event_shape).sample(n, generator)
    return Gaussian.fitted(data.batch(torch.arange(len(data.train)))).sample(n, generator)
