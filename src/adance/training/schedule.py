"""The learning rate as a function of the step, so that resuming needs no state."""

import dataclasses
import math
import warnings

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


def warn_of_new_steps(before: Settings, steps: int) -> None:
    """Warn if the learning rate depends on the number of steps, and ``steps`` is another number than before."""
    if steps != before.steps and before.schedule in ("linear", "cosine"):
        now = dataclasses.replace(before, steps=steps)
        old, new = (learning_rate(settings, before.steps) for settings in (before, now))
        warnings.warn(
            f"schedule={before.schedule} depends on steps: with steps={steps} instead of {before.steps}, the learning "
            f"rate of step {before.steps} is {new:.3g}, not {old:.3g}; schedule=inverse does not depend on it",
            stacklevel=3,
        )


def warn_of_long_warmup(settings: Settings) -> None:
    """Warn that warm-up is longer than training."""
    warnings.warn(
        f"warmup={settings.warmup} is longer than steps={settings.steps}: the learning rate never reaches "
        f"lr={settings.lr:g}, only {learning_rate(settings, settings.steps):.3g}",
        stacklevel=3,
    )
