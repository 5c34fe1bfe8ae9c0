"""All measures of one set of vectors."""

from typing import Any

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.evaluation.measurement import Measurement
from adance.evaluation.reference import Split
from adance.evaluation.vectors import mode_coverage, sliced_wasserstein, squared_mmd, stein_discrepancy
from adance.training.run import Run

MOST = 2000


def measure_vectors(
    run: Run,
    data: Dataset,
    x: Tensor,
    *,
    split: Split = "train",
    samples: str = "samples",
    chain_length: int | None = None,
    seed: int = 0,
) -> list[Measurement]:
    """MMD, sliced Wasserstein distance, kernel Stein discrepancy, and where modes are known their coverage.

    All are of vectors in the model's units (standardised columns, where the data were standardised).

    Args:
        run: The run, whose score the Stein discrepancy takes.
        data: Its data.
        x: Vectors ``(n, D)``; the first 2,000 where a measure grows with n².
        split: The split that they are compared with, as many rows as ``x`` has.
        samples: What ``x`` is called in the measurements.
        chain_length: Of the chains that drew ``x``.
        seed: Of the choice of rows and of directions; also noted as the seed of ``x``.
    """
    generator = torch.Generator().manual_seed(seed)
    size = len(data.train if split == "train" else data.test)
    real = data.batch(torch.randperm(size, generator=generator)[: len(x)], split)
    common: dict[str, Any] = {
        "group": "samples",
        "samples": samples,
        "split": split,
        "chain_length": chain_length,
        "seed": seed,
    }
    T = 1.0 if run.kernel is None else run.kernel.temperature
    few, few_real = x[:MOST], real[:MOST]
    two = {**common, "n": len(few), "n_reference": len(few_real), "better": "lower"}
    stein = stein_discrepancy(run.energy, few.to(run.device), T)
    wasserstein = sliced_wasserstein(x, real, generator=generator)
    measurements = [
        Measurement(metric="squared_mmd", name="squared MMD, Gaussian kernel", value=squared_mmd(few, few_real), **two),
        Measurement(
            metric="sliced_wasserstein",
            name="sliced Wasserstein distance",
            value=wasserstein,
            **{**two, "n": len(x), "n_reference": len(real)},
        ),
        Measurement(
            metric="stein_discrepancy",
            name="squared kernel Stein discrepancy from the model",
            value=stein,
            **{**two, "n_reference": None, "split": None},
            note=f"against exp(−E/T) at T = {T:g}",
        ),
    ]
    if data.density is not None and data.density.modes is not None:
        modes = data.transform.to_model(data.density.modes)
        covered, inside, distance = mode_coverage(x, modes, real)
        known = {**common, "n": len(x), "n_reference": len(real)}
        note = f"{len(modes)} modes"
        measurements += [
            Measurement(
                metric="modes_covered",
                name="share of modes covered",
                value=covered,
                better="higher",
                note=note,
                **known,
            ),
            Measurement(
                metric="in_modes", name="share of samples in a mode", value=inside, better="higher", note=note, **known
            ),
            Measurement(
                metric="mode_imbalance",
                name="total variation of modes from equal",
                value=distance,
                better="lower",
                note=note,
                **known,
            ),
        ]
    return measurements
