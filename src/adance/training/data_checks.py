"""Checks of a run's data: whether the energy accepts them, and whether they are those of an earlier run."""

import math
import zlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from adance.data.dataset import Dataset
from adance.energies.analytic import Gaussian
from adance.energies.class_conditional import ClassConditionalMLP
from adance.energies.conditional import given, takes_condition
from adance.errors import InputError
from adance.training.run_folder import RunFolder

MAX_ROWS, MAX_VALUES = 10_000, 2**27


def evenly_spaced_rows(data: Dataset) -> Tensor:
    """Up to 10,000 training rows ``(N, *event)`` in model units, evenly spaced since files are often sorted.

    Rows of more than 13,000 values are fewer: 2²⁷ values in all, but at least two rows.
    """
    n = len(data.train)
    most = max(2, min(MAX_ROWS, MAX_VALUES // math.prod(data.event_shape)))
    exact = torch.float32 if n < 2**24 else torch.float64
    return data.batch(torch.linspace(0, n - 1, min(most, n), dtype=exact).long())


def fingerprint(data: Dataset, rows: Tensor) -> dict[str, Any]:
    """The content of ``data.json``: shape and units of the data, and statistics that identify them.

    Args:
        data: The data.
        rows: Rows ``(N, *event)`` whose mean and standard deviation (for vectors: of each feature) identify the data,
            with a checksum of all labels.
    """
    labels = {} if data.train_labels is None else {"labels": zlib.crc32(data.train_labels.cpu().numpy().tobytes())}
    if data.kind == "image":
        return data.describe() | labels | {"pixels": {"mean": float(rows.mean()), "std": float(rows.std())}}
    law = Gaussian.fitted(rows)
    return data.describe() | labels | {"mean": law.mean.tolist(), "std": law.std.tolist()}


@torch.no_grad()
def check_energy(energy: nn.Module, x: Tensor, data: Dataset) -> None:
    """Check that the energy maps events ``x`` ``(B, *event)`` to ``(B,)``, given their labels if it is conditional.

    Raises:
        InputError: The energy fails on the events, returns another shape, or needs labels that the data lack.
    """
    labels = data.train_labels if takes_condition(energy) else None
    if takes_condition(energy):
        if labels is None:
            raise InputError(f"{data.name} has no labels, which {type(energy).__name__} needs as its condition")
        if isinstance(energy, ClassConditionalMLP):
            energy.check_labels(labels)
    try:
        shape = given(energy, None if labels is None else labels[: len(x)])(x).shape
    except (RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"the energy does not accept events of shape {data.event_shape} of {data.name}: "
            f"{' '.join(str(error).split())}"
        ) from None
    if shape != (len(x),):
        raise InputError(
            f"the energy returned shape {tuple(shape)} for {len(x)} events; it must return shape ({len(x)},)"
        )


def check_same_data(folder: RunFolder, now: Mapping[str, Any]) -> None:
    """Check that the run in ``folder`` was trained on the data described by ``now``.

    Their name may differ, and statistics may differ by rounding.

    Raises:
        InputError: The data have changed.
    """
    before = folder.read_data_description()
    if not all(_close(value, now.get(name)) for name, value in before.items() if name != "name"):
        raise InputError(
            f"the data of {folder.path} have changed since training: rows, shape or units differ from "
            f"{folder.path / 'data.json'}; restore the data, or start a new run"
        )


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_close(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_close, a, b))
    return bool(a == b)
