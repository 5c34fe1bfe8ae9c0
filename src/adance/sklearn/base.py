"""The base of a density of rows, fitted to them."""

from typing import cast, get_args

import torch
from torch import Tensor

from adance.energies.analytic import Density, ExactDensity
from adance.energies.blend import Blend
from adance.energies.kernel_density import KernelDensity, stacking_weights
from adance.energies.mixtures import FittedMixture
from adance.energies.student import StudentT
from adance.errors import InputError
from adance.noises.by_name import NoiseName, as_noise
from adance.noises.fixed import DensityNoise
from adance.sklearn.rows import TableRows
from adance.training.in_memory import Rows

BASES, WIDE_BASES = ("student", "cover"), ("student", "kde")
"""Bases that ``auto`` chooses from, and those for wide tables, where fitting mixtures is slow."""

WIDE = 64
"""A table with more columns than this is wide."""

COMPONENTS = (1, 3, 10, 30)
"""Numbers of components of the mixtures in a stack."""

ROWS_PER_COMPONENT = 5
"""Least number of rows for each component of a mixture in a stack."""

NOISY_ROWS = 2000
"""Least number of rows that mixtures in a stack are fitted to; fewer rows are repeated with new noise."""

SMALLEST_WEIGHT = 0.02
"""Smallest weight of a density in a stack, which keeps the tails of the stack heavy."""


def fit_base(rows: TableRows, noise: str, generator: torch.Generator) -> Density:
    """Fit a base to rows.

    Args:
        rows: The rows.
        noise: Name of a distribution, ``auto`` or ``stack``. ``auto`` is the one of ``BASES``, or of ``WIDE_BASES`` for
            wide tables, that is best on held-out rows. ``stack`` is a mixture of several distributions with the weights
            that are best on held-out rows (Smyth and Wolpert 1999); for wide tables it is the same as ``auto``.
        generator: Source of randomness.

    Raises:
        InputError: ``noise`` is unknown.
    """
    x = rows.train.with_noise(generator).x
    held_out = rows.held_out.with_noise(generator).x
    wide = x.shape[1] > WIDE
    if noise == "stack" and not wide:
        return _stack(rows.train, x, held_out, generator)
    names = (noise,) if noise not in ("auto", "stack") else WIDE_BASES if wide else BASES
    distributions = [_noise_named(name).fit(x, generator) for name in names]
    return max(distributions, key=lambda distribution: float(distribution.log_prob(held_out).mean()))


def _stack(train: Rows, x: Tensor, held_out: Tensor, generator: torch.Generator) -> Blend:
    """Distributions fitted to ``x``, the rows of ``train`` with noise; for mixtures, also to copies with new noise."""
    n = len(x)
    copies = torch.cat([x] + [train.with_noise(generator).x for _ in range(1, -(-NOISY_ROWS // n))])
    parts: list[ExactDensity] = [
        FittedMixture.to_data(copies, k) for k in COMPONENTS if ROWS_PER_COMPONENT * k <= n or k == 1
    ]
    parts += [StudentT.fitted(x), KernelDensity.fitted(x, generator)]
    weights = stacking_weights(torch.stack([part.log_prob(held_out) for part in parts]), SMALLEST_WEIGHT)
    return Blend(parts, weights)


def _noise_named(name: str) -> DensityNoise:
    known = [distribution for distribution in get_args(NoiseName) if distribution != "uniform"]
    if name not in known:
        raise InputError(f"noise must be auto, stack, {', '.join(known[:-1])} or {known[-1]}, got {name!r}")
    distribution = as_noise(cast(NoiseName, name))
    assert isinstance(distribution, DensityNoise)
    return distribution
