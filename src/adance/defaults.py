"""Every default that depends on what is learned, in one table.

=============================  ====================  ==========================
default                        images                vectors
=============================  ====================  ==========================
activation of a network        leaky ReLU            SiLU
spectral normalization         yes                   no
Gaussian base term             no                    yes
kernel of the chains           30 Langevin steps,    50 MALA steps at T = 1,
                               α = 1, σ = 0.005,     step size adapted; fewer if
                               in [−1, 1]            chains are reweighted
where chains start             rejuvenated buffer    reweighted buffer if the
                                                     kernel is exact and the
                                                     energy not conditional,
                                                     else rejuvenated
rejuvenation R                 0.25                  0.02
interval K                     10                    50
K of reweighted chains         auto                  auto
pool                           batch·⌈K/10⌉          batch·⌈K/10⌉
buffer                         5,000 chains, or as many as run at a time
T of the ratio, bounded        auto (0.005 without   0.01 of the chain's
weights, centered              Langevin chains)
T of the ratio, reweighted     the chain's           the chain's
snapshots at a fixed K > 10    3                     1
share of the steps with K = 1  0                     0
at the end
=============================  ====================  ==========================

With ``auto`` the pool is that of the K in the row above it. A ratio that is not centered has the chain's temperature if
the contrast's weights are bounded, and else 1. :mod:`adance.objectives.resolve` applies the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Activation = Literal["leaky_relu", "relu", "silu", "softplus"]

BUFFER = 5000
"""Chains that a buffer holds."""

LONG_INTERVAL = 10
"""An interval above it is long."""

MARGIN = 0.01
"""δ of a ratio that is not centered, in units of energy."""


@dataclass(frozen=True)
class Defaults:
    """A column of the table.

    Attributes:
        activation: Activation of a network.
        spectral_norm: Whether every layer is normalized.
        base: Whether the energy has a Gaussian base term.
        sampler: Class path and arguments of the kernel.
        rejuvenation: R.
        interval: K.
        ratio_temperature: T of a centered ratio with bounded weights, in units of the chain's; ``None`` for ``auto``.
        long_snapshots: Snapshots at a long interval.
        finish: Share of the steps, at the end, with an interval of 1.
    """

    activation: Activation
    spectral_norm: bool
    base: bool
    sampler: Mapping[str, Any]
    rejuvenation: float
    interval: int
    ratio_temperature: float | None
    long_snapshots: int
    finish: float


IMAGES = Defaults(
    activation="leaky_relu",
    spectral_norm=True,
    base=False,
    sampler={
        "class_path": "adance.Langevin",
        "init_args": {"steps": 30, "step_size": 1.0, "noise_std": 0.005, "bounds": [-1.0, 1.0]},
    },
    rejuvenation=0.25,
    interval=10,
    ratio_temperature=None,
    long_snapshots=3,
    finish=0.0,
)

VECTORS = Defaults(
    activation="silu",
    spectral_norm=False,
    base=True,
    sampler={"class_path": "adance.MALA", "init_args": {"steps": 50}},
    rejuvenation=0.02,
    interval=50,
    ratio_temperature=0.01,
    long_snapshots=1,
    finish=0.0,
)


def defaults_of(event_shape: Sequence[int]) -> Defaults:
    """The column for events of this shape: one axis is a vector, more are an image."""
    return VECTORS if len(event_shape) == 1 else IMAGES
