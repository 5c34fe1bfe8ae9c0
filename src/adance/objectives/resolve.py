"""Fills in the numbers that a recipe leaves open, from the table in :mod:`adance.defaults`."""

import math
from collections.abc import Mapping
from typing import Any

from adance.configurable import build
from adance.contrasts.bregman import Bregman
from adance.defaults import BUFFER, LONG_INTERVAL, defaults_of
from adance.errors import InputError
from adance.noises.refresh import Interval
from adance.objectives.log_ratio import BOUNDS, RatioTemperature
from adance.objectives.objective import Setting
from adance.objectives.snapshot_recipe import SnapshotRecipe
from adance.samplers.kernel import Kernel
from adance.samplers.langevin import Langevin
from adance.samplers.persistent_chains import BUFFERED, StartKind

Sampler = Kernel | Mapping[str, Any] | None
"""A kernel, some arguments of the default kernel, or ``None`` for the default kernel."""


def resolve_sampler(sampler: Sampler, setting: Setting) -> Kernel:
    """The kernel that is given, or the default kernel with the given arguments changed.

    Raises:
        InputError: The default kernel has no such argument, or rejects its value.
    """
    if isinstance(sampler, Kernel):
        return sampler
    default = build(defaults_of(setting.event_shape).sampler, Kernel)  # type: ignore[type-abstract]
    return default.with_changes(sampler) if sampler else default


def resolve_start(
    start: StartKind | None, rejuvenation: float | None, sampler: Kernel, setting: Setting
) -> tuple[StartKind, float]:
    """Where chains start, and R.

    Raises:
        InputError: ``start`` is ``reweighted``, but the chains cannot be reweighted.
    """
    can_follow = sampler.keeps_target and not setting.conditional
    if start is None:
        follow = setting.vectors and can_follow and rejuvenation is None
        start = "reweighted" if follow else "rejuvenated"
    if start == "reweighted" and not can_follow:
        name = type(sampler).__name__
        why = "the energy is conditional" if setting.conditional else f"chains of {name} cannot follow the model"
        raise InputError(f"start='reweighted' is not possible: {why}; use another start")
    if rejuvenation is None:
        rejuvenation = defaults_of(setting.event_shape).rejuvenation if start == "rejuvenated" else 0.0
    return start, rejuvenation


def resolve_buffer(buffer: int | None, start: StartKind, rows: int) -> int:
    """Number of chains in the buffer if ``rows`` run at a time.

    Raises:
        InputError: ``buffer`` is smaller than ``rows``.
    """
    buffer = max(BUFFER, rows) if buffer is None else buffer
    if start in BUFFERED and rows > buffer:
        raise InputError(
            f"a buffer of {buffer} is smaller than the {rows} chains that run at a time: use at least {rows}, or make "
            "the batch or the pool smaller"
        )
    return buffer


def resolve_pool(pool: int | None, interval: Interval, rows: int, setting: Setting) -> int:
    """Number of chains to run at each refresh, for ``rows`` noise samples at each step.

    Raises:
        InputError: ``pool`` is smaller than ``rows``.
    """
    if pool is None:
        served = defaults_of(setting.event_shape).interval if interval == "auto" else interval
        pool = rows * math.ceil(served / 10)
    if 0 < pool < rows:
        raise InputError(
            f"pool={pool} is smaller than the {rows} noise samples of a batch: use at least {rows}, or 0 for fresh "
            "chains at every step"
        )
    return pool


def resolve_interval(start: StartKind, setting: Setting) -> Interval:
    """K."""
    return "auto" if start == "reweighted" else defaults_of(setting.event_shape).interval


def resolve_finish(interval: Interval, setting: Setting) -> float:
    """The share of the steps, at the end, that have K = 1."""
    return 0.0 if interval == 1 else defaults_of(setting.event_shape).finish


def resolve_ratio_temperature(
    contrast: Bregman, center: bool, snapshot: SnapshotRecipe, setting: Setting
) -> RatioTemperature:
    """T of the ratio."""
    chains = snapshot.sampler.temperature
    if snapshot.start == "reweighted":
        return chains
    if not contrast.bounded_weights:
        return 1.0
    if not center or snapshot.interval == 1:
        return chains
    temperature = defaults_of(setting.event_shape).ratio_temperature
    if temperature is None:
        return "auto" if isinstance(snapshot.sampler, Langevin) else BOUNDS[0]
    return temperature * chains


def resolve_snapshots(contrast: Bregman, center: bool, interval: Interval, pool: int, setting: Setting) -> int:
    """Number of snapshots in the mixture."""
    long = interval != "auto" and interval > LONG_INTERVAL
    return (
        defaults_of(setting.event_shape).long_snapshots if long and pool and center and contrast.bounded_weights else 1
    )
