"""Axes: round numbers for ticks, and how numbers are written."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Maps ``low..high`` of the data to ``first..last`` of the drawing."""

    low: float
    high: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        """Where ``value`` is drawn."""
        return self.first + (value - self.low) / (self.high - self.low) * (self.last - self.first)


def padded_range(values: Sequence[float]) -> tuple[float, float]:
    """A range that holds ``values``, a little wider; never of width 0."""
    low, high = min(values), max(values)
    if high - low < 1e-9 * max(abs(low), abs(high)) or high == low:
        room = abs(high) / 2 or 1.0
        return low - room, high + room
    room = 0.05 * (high - low)
    return low - room, high + room


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers in ``low..high``: multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def number(value: float) -> str:
    """A number to four digits, with a real minus sign; thousands are grouped."""
    if not math.isfinite(value):
        return "not finite"
    if value == 0:
        return "0"
    if 1000 <= abs(value) < 1e6 or (abs(value) >= 1e6 and value == round(value)):
        text = f"{value:,.0f}"
    elif abs(value) < 1e-3 or abs(value) >= 1e6:
        text = f"{value:.2e}".replace("e-0", "e-").replace("e+0", "e")
        mantissa, exponent = text.split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"
    else:
        text = f"{value:.4g}"
    return text.replace("-", "−")


def tick_text(value: float, step: float) -> str:
    """A tick's label: as many decimals as ``step`` asks for, thousands as k."""
    if abs(value) < step * 1e-6:
        return "0"
    if step < 1e-4 or abs(value) >= 1e6:
        return number(float(f"{value:.3g}"))
    if abs(value) >= 1000 and step >= 100:
        return f"{value / 1000:g}k".replace("-", "−")
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:.{decimals}f}".replace("-", "−")
