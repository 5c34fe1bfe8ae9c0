"""Checks of a run's data: whether the energy accepts them, and whether they are those of an earlier run."""

import math
import warnings
import zlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from adance.data.dataset import Dataset
from adance.energies.analytic import Gaussian
from adance.energies.class_conditional import ClassConditional
from adance.energies.conditional import given, needs_condition, takes_condition
from adance.energies.energy import eval_mode
from adance.errors import InputError
from adance.training.run_folder import RunFolder

MAX_ROWS, MAX_VALUES = 10_000, 2**27


def evenly_spaced_rows(data: Dataset) -> Tensor:
    """Up to 10,000 training rows ``(N, *event)`` in model units, evenly spaced since files are often sorted.

    If rows have more than 13,000 values, fewer are used: at most 2²⁷ values in total, but at least two rows.
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
            with a checksum of all labels and the labels that occur.
    """
    labels: dict[str, Any] = {}
    if data.train_labels is not None:
        known = torch.unique(data.train_labels).tolist()
        labels = {"labels": zlib.crc32(data.train_labels.cpu().numpy().tobytes()), "classes": known}
    if data.kind == "image":
        return data.describe() | labels | {"pixels": {"mean": float(rows.mean()), "std": float(rows.std())}}
    distribution = Gaussian.fitted(rows)
    return data.describe() | labels | {"mean": distribution.mean.tolist(), "std": distribution.std.tolist()}


@torch.no_grad()
def check_energy(energy: nn.Module, x: Tensor, data: Dataset) -> None:
    """Check that the energy maps events ``x`` ``(B, *event)`` to ``(B,)``, given any label of the data if it needs one.

    Raises:
        InputError: The energy fails on the events or on a label, returns another shape, or needs labels that the data
            lack.
    """
    if takes_condition(energy):
        with eval_mode(energy):  # a forward pass in training may change an energy, such as its spectral normalization
            _check_labels(energy, x[:1], data)
    labels = data.train_labels if takes_condition(energy) else None
    shape = _energies(
        energy, x, None if labels is None else labels[: len(x)], f"events of shape {data.event_shape}", data
    )
    if shape != (len(x),):
        raise InputError(
            f"the energy returned shape {tuple(shape)} for {len(x)} events; it must return shape ({len(x)},)"
        )


def _check_labels(energy: nn.Module, x: Tensor, data: Dataset) -> None:
    """Check that the energy accepts the labels of both splits, by evaluating it at the lowest and the highest."""
    name = type(energy).__name__
    if data.train_labels is None:
        raise InputError(f"{data.name} has no labels, which {name} needs as its condition")
    if data.test_labels is None and needs_condition(energy):
        raise InputError(f"{data.name} has no labels of held-out rows, which {name} needs as its condition")
    known = torch.unique(data.train_labels)
    splits = {"training": known, "held-out": known if data.test_labels is None else torch.unique(data.test_labels)}
    for split, labels in splits.items():
        if isinstance(energy, ClassConditional):
            energy.check_labels(labels, split)
        for label in (labels.min(), labels.max()):
            _energies(energy, x, label[None], f"label {int(label)} of the {split} rows", data)
    if isinstance(energy, ClassConditional) and len(known) < energy.classes:
        needed = int(torch.cat(list(splits.values())).max()) + 1
        advice = f": set classes to {needed}" if needed < energy.classes else ""
        warnings.warn(
            f"{data.name} has training rows of {len(known)} of the {energy.classes} classes of {name}, which learns "
            f"nothing about the others{advice}",
            stacklevel=4,
        )
    unseen = splits["held-out"][~torch.isin(splits["held-out"], known)].tolist()
    if unseen:
        shown = ", ".join(map(str, unseen))
        warnings.warn(f"{data.name}: held-out rows have labels that no training row has: {shown:.100}", stacklevel=4)


def _energies(energy: nn.Module, x: Tensor, labels: Tensor | None, what: str, data: Dataset) -> torch.Size:
    """The shape of the energies of ``x``; if the energy fails, the error says that it does not accept ``what``."""
    try:
        return given(energy, None if labels is None else labels.to(x.device))(x).shape  # type: ignore[no-any-return]
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"the energy does not accept {what} of {data.name}: {' '.join(str(error).split())}") from None


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
