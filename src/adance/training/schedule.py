"""The learning rate as a function of the step, so that resuming needs no state."""

import math

from adance.training.settings import Settings

FLOOR = 0.02
"""Lowest rate of the falling schedules, as a share of ``lr``."""


def learning_rate(settings: Settings, step: int) -> float:
    """The learning rate of optimizer step ``step``, counted from 1."""
    rate = settings.lr * min(1.0, step / settings.warmup if settings.warmup else 1.0)
    if settings.schedule == "constant":
        return rate
    if settings.schedule == "inverse":
        return rate * min(1.0, settings.decay_after / step)
    half = settings.steps / 2
    done = min(1.0, max(0.0, (step - half) / half))
    falling = 1 - done if settings.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * done))
    return rate * max(FLOOR, falling)
