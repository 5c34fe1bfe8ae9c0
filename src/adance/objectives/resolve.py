"""How the numbers that a recipe leaves open are chosen, by the table in :mod:`adance.defaults`."""

import math
from collections.abc import Mapping
from typing import Any

from adance.configurable import build
from adance.contrasts.bregman import Bregman
from adance.defaults import BUFFER, LONG_INTERVAL, defaults_of
from adance.errors import InputError
from adance.noises.refresh import Interval
from adance.objectives.objective import Setting
from adance.objectives.snapshot_recipe import SnapshotRecipe
from adance.samplers.kernel import Kernel
from adance.samplers.starts import BUFFERED, StartKind

Sampler = Kernel | Mapping[str, Any] | None
"""A kernel, some of the default one's arguments, or ``None`` for the default one."""


def resolve_sampler(sampler: Sampler, setting: Setting) -> Kernel:
    """The kernel: the one given, or the default one, perhaps with some of its arguments changed.

    Raises:
        InputError: The default kernel does not take one of the arguments, or refuses its value.
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
        InputError: Chains that cannot be reweighted are asked to be.
    """
    can_follow = sampler.keeps_law and not setting.conditional
    if start is None:
        follow = setting.vectors and can_follow and rejuvenation is None
        start = "reweighted" if follow else "rejuvenated"
    if start == "reweighted" and not can_follow:
        name = type(sampler).__name__
        why = "a conditional energy's belong to one batch" if setting.conditional else f"{name} does not keep a law"
        raise InputError(f"chains cannot be reweighted: {why}; choose another start")
    if rejuvenation is None:
        rejuvenation = defaults_of(setting.event_shape).rejuvenation if start == "rejuvenated" else 0.0
    return start, rejuvenation


def resolve_buffer(buffer: int | None, start: StartKind, rows: int) -> int:
    """Chains that the buffer keeps if ``rows`` run at a time.

    Raises:
        InputError: A smaller one is asked for.
    """
    buffer = max(BUFFER, rows) if buffer is None else buffer
    if start in BUFFERED and rows > buffer:
        raise InputError(
            f"{rows} chains run at a time and the replay buffer keeps {buffer}; keep at least {rows}, or make the "
            "batch or the pool smaller"
        )
    return buffer


def resolve_pool(pool: int | None, interval: Interval, rows: int, setting: Setting) -> int:
    """Chains that are run at each refresh, for ``rows`` noise samples at each step.

    Raises:
        InputError: The pool is smaller than that, or a conditional energy's.
    """
    if setting.conditional and pool:
        raise InputError(f"chains of a conditional energy belong to one batch: set pool=0, not {pool}")
    if pool is None:
        served = defaults_of(setting.event_shape).interval if interval == "auto" else interval
        pool = 0 if setting.conditional else rows * math.ceil(served / 10)
    if 0 < pool < rows:
        raise InputError(
            f"pool={pool} is smaller than the {rows} noise samples of a batch: use at least {rows}, or 0 for fresh "
            "chains at every step"
        )
    return pool


def resolve_interval(start: StartKind, setting: Setting) -> Interval:
    """K."""
    return "auto" if start == "reweighted" else defaults_of(setting.event_shape).interval


def resolve_ratio_temperature(contrast: Bregman, center: bool, snapshot: SnapshotRecipe, setting: Setting) -> float:
    """T of the ratio."""
    chains = snapshot.sampler.temperature
    if snapshot.start == "reweighted":
        return chains
    if not contrast.saturates:
        return 1.0
    if not center or snapshot.interval == 1:
        return chains
    column = defaults_of(setting.event_shape)
    return column.ratio_temperature * chains if column.in_chain_units else column.ratio_temperature


def resolve_snapshots(contrast: Bregman, center: bool, interval: Interval, pool: int, setting: Setting) -> int:
    """How many snapshots the noise is a mixture of."""
    long = interval != "auto" and interval > LONG_INTERVAL
    return defaults_of(setting.event_shape).long_snapshots if long and pool and center and contrast.saturates else 1
