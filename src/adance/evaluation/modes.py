"""Which modes of a known density samples reach."""

import torch
from torch import Tensor

from adance.evaluation.measurement import Measurement
from adance.evaluation.sample_set import SampleSet, for_vectors


def mode_coverage(x: Tensor, modes: Tensor, data: Tensor) -> tuple[float, float, float]:
    """Which known modes samples reach.

    A point belongs to a mode within a radius that holds 99 % of real data around their nearest modes. A mode is covered
    when at least a tenth of its fair share n/M of the samples belong to it.

    Args:
        x: Samples ``(n, D)``.
        modes: Centers ``(M, D)`` of clumps of equal mass.
        data: Real data ``(m, D)``.

    Returns:
        Share of modes covered; share of samples that belong to a mode; total variation distance between the samples'
        shares of modes, among those that belong to one, and equal shares.
    """
    radius = torch.quantile(torch.cdist(data.double(), modes.double()).min(1).values, 0.99)
    distance, mode = torch.cdist(x.double(), modes.double()).min(1)
    counts = torch.bincount(mode[distance <= radius], minlength=len(modes)).double()
    covered = float((counts >= 0.1 * len(x) / len(modes)).double().mean())
    shares = counts / counts.sum().clamp(min=1)
    return covered, float(counts.sum() / len(x)), float((shares - 1 / len(modes)).abs().sum() / 2)


@for_vectors
def measure_modes(samples: SampleSet) -> list[Measurement]:
    """Modes covered, samples in a mode, and imbalance of the modes, if the data have modes that are known."""
    density = samples.data.density
    if density is None or density.modes is None:
        return []
    modes = samples.data.transform.to_model(density.modes)
    covered, inside, distance = mode_coverage(samples.x, modes, samples.real)
    about = {"n_reference": len(samples.real), "note": f"{len(modes)} modes"}
    return [
        samples.measurement("modes_covered", "share of modes covered", covered, better="higher", **about),
        samples.measurement("in_modes", "share of samples in a mode", inside, better="higher", **about),
        samples.measurement("mode_imbalance", "total variation of modes from equal", distance, better="lower", **about),
    ]
