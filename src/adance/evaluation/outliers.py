"""Outlier detection: how well −E tells held-out data from what is not data."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.data.load import load_for_model
from adance.energies.analytic import Gaussian, Uniform
from adance.evaluation.measurement import Measurement
from adance.training.run import Run


def auroc(inside: Tensor, outside: Tensor) -> float:
    """``P(E(outlier) > E(datum)) + ½P(equal)``, from energies ``(n,)`` and ``(m,)``; 0.5 is chance, 1 perfect."""
    ordered = inside.double().sort().values
    outside = outside.double()
    below = torch.searchsorted(ordered, outside)
    up_to = torch.searchsorted(ordered, outside, right=True)
    return float((below + up_to).double().mean() / (2 * len(ordered)))


def measure_outliers(
    run: Run, data: Dataset, given: Mapping[str, Tensor] | None = None, *, n: int = 1000, seed: int = 0
) -> list[Measurement]:
    """AUROC of −E for held-out data against noise, interpolations, training rows, and the sets that are named.

    *Noise* is uniform on [−1, 1] for images and the fitted normal law for vectors. *Interpolations* lie half-way
    between two held-out rows of different classes (any two, without labels). *Training rows* are no outliers: 0.5 says
    that the model does not tell them from held-out ones.

    Args:
        run: The run.
        data: Its data.
        given: Outlier sets ``(N, *event)`` by name, in the model's units.
        n: Rows of each set at most.
        seed: Seed of draws and of the choice of rows.
    """
    generator = torch.Generator().manual_seed(seed)
    inside = data.batch(_some(len(data.test), n, generator), "test")
    sets = {name: rows[_some(len(rows), n, generator)] for name, rows in (given or {}).items()}
    sets["interpolations"] = _interpolations(data, n, generator)
    sets["noise"] = _noise(data, n, generator)
    sets["training rows"] = data.batch(_some(len(data.train), n, generator))
    energies = run.score(inside)
    return [
        Measurement(
            group="outliers",
            metric="auroc",
            name=f"AUROC of −E, {name}",
            value=auroc(energies, run.score(x)),
            better=None if name == "training rows" else "higher",
            samples=name,
            split="test",
            n=len(x),
            n_reference=len(inside),
            seed=seed,
            note="0.5 says that training rows are not told from held-out ones" if name == "training rows" else None,
        )
        for name, x in sets.items()
    ]


def load_outliers(run: Run, names: Sequence[str]) -> dict[str, Tensor]:
    """Outlier sets ``(N, *event)`` in the model's units, by their names or paths.

    Raises:
        InputError: A set cannot be read, or its events have another shape.
    """
    return {name: load_for_model(name, run.data) for name in names}


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
