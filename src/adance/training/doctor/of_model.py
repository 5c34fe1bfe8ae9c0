"""Checks of the model and its optimizer."""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

from adance.training.doctor.check import Check, Rows
from adance.training.doctor.finding import Finding
from adance.training.doctor.history import History, Row, median, values

LINES_OF_TREND = 6
"""Number of lines that must all move in the same direction to be a trend."""

STEADY = 0.7
"""A trend has ended if its second half moves by less than this share of its first half."""


def live_share(rows: Rows) -> float:
    """The share of weights that have had a nonzero gradient; 0 if the energy is constant."""
    return rows[-1]["live_weights"] if rows[-1].get("energy_std", 1.0) > 0 else 0.0


def _dead(run: History, rows: Rows, share: float) -> Finding:
    last = rows[-1]
    signs = f"{last['live_weights']:.2g} of the weights have had a nonzero gradient"
    if "energy_std" in last:
        signs += f", and the energies of data have a standard deviation of {last['energy_std']:.3g}"
    cure = "start from random weights instead of zeros, and use an activation that lets gradients through, such as silu"
    return Finding("dead network", signs, cure, 3)


def swing(rows: Rows) -> float:
    """How much single steps change the mean energy of data, in standard deviations of their energies.

    This is half the interquartile range of the changes. So a single large change does not count, nor does noise that is
    added to data in training, which shifts all changes by the same amount. It is infinite if training diverged.
    """
    if _diverged_at(rows):
        return math.inf
    jumps = [(row["energy_train"] - row["energy_data"]) / row["energy_std"] for row in rows if row["energy_std"] > 0]
    if len(jumps) < 2:
        return 0.0
    lower, _, upper = statistics.quantiles(jumps, method="inclusive")
    return (upper - lower) / 2


def _diverged_at(rows: Rows) -> float:
    return rows[-1].get("diverged_at", 0)


def _swings(run: History, rows: Rows, found: float) -> Finding:
    cure = f"divide lr by 10{_now(run.config.get('lr'))}"
    if _diverged_at(rows):
        signs = f"training diverged at step {_diverged_at(rows):.0f}"
    else:
        signs = f"single steps change the mean energy of data by about {found:.3g} standard deviations of the energies"
    return Finding("learning rate too large", signs, cure, 3)


def relative_step(rows: Rows) -> float:
    """The largest learning rate, by which Adam changes a weight in a step, relative to the size of the weights."""
    return max(row["learning_rate"] / row["weight_rms"] for row in rows)


def _stands_still(run: History, rows: Rows, found: float) -> Finding:
    rate, size = max(values(rows, "learning_rate")), rows[-1]["weight_rms"]
    signs = f"a step changes a weight by about {rate:.2g}, only {found:.1e} of the weights' root mean square {size:.2g}"
    cure = f"raise lr{_now(run.config.get('lr'))}, for example to {0.01 * size:.0e}"
    return Finding("learning rate too small", signs, cure, 3)


def _after_warmup(run: History) -> Rows:
    given = run.config.get("warmup")
    warmup = given if isinstance(given, int) else 0
    known = [row for row in run.rows if {"learning_rate", "weight_rms"} <= row.keys() and row["weight_rms"] > 0]
    return [row for row in known if row["step"] > warmup] if run.settled() else []


def drift(rows: Rows) -> float:
    """How fast energies of data, or their gap to noise, move: standard deviations per 100 steps, 0 without a trend."""
    return max(_speed(rows, values(rows, "energy_train")), _speed(rows, _gaps(rows)))


def _gaps(rows: Rows) -> list[float]:
    """Mean energy of noise minus that of data; 0 without noise."""
    return [row.get("energy_noise", row["energy_data"]) - row["energy_data"] for row in rows]


def _speed(rows: Rows, positions: Sequence[float]) -> float:
    moves = [after - before for before, after in pairwise(positions)]
    half, spread, steps = len(moves) // 2, median(rows, "energy_std"), rows[-1]["step"] - rows[0]["step"]
    one_way = all(move > 0 for move in moves) or all(move < 0 for move in moves)
    slows = abs(sum(moves[-half:])) < STEADY * abs(sum(moves[:half]))
    if not one_way or slows or spread == 0 or steps == 0:
        return 0.0
    return 100 * abs(sum(moves)) / spread / steps


def _drifts(run: History, rows: Rows, found: float) -> Finding:
    if _speed(rows, values(rows, "energy_train")) == found:
        signs = f"the mean energy of data is {rows[-1]['energy_train']:.4g}, and still moves"
    else:
        signs = f"the mean energy of noise is {_gaps(rows)[-1]:.4g} above that of data, and the gap still changes"
    signs += f" by {found:.2g} standard deviations of the energies in 100 steps"
    cure = "set objective.energy_penalty to 0.001, or bound the energy (energy.spectral_norm=true)"
    if run.of_objective("center") is False:
        margin = _now(run.of_objective("margin"))
        cure = f"fit the constant (objective.center=true, without objective.margin{margin}), or {cure}"
    return Finding("energies drift", signs, cure, 3 if run.diverged else 2)


def overfit(rows: Rows) -> float:
    """How far the energies of held-out rows are above those of training rows, in standard deviations of the latter."""
    gaps = [row["energy_held_out"] - row["energy_train"] for row in rows]
    return statistics.median(
        gap / row["energy_std"] if row["energy_std"] > 0 else 0.0 for gap, row in zip(gaps, rows, strict=True)
    )


def _memorizes(run: History, rows: Rows, found: float) -> Finding:
    signs = f"held-out rows have energies {found:.2g} standard deviations above those of training rows"
    cure = "use more data or a smaller network, add data_noise, or stop earlier (evaluate_every and patience)"
    return Finding("overfitted energy", signs, cure, 2)


def _starts_badly(run: History, rows: Rows, found: float) -> Finding:
    signs = "the loss, an energy or the gradient of the first step is not finite"
    cure = "look for extreme values in the data, for logarithms and divisions in the energy, and for data outside the "
    return Finding("no finite start", signs, f"{cure}support of the noise", 3)


def _now(value: object) -> str:
    return f" (now {value:g})" if isinstance(value, (int, float)) else ""


def _with_divergence(run: History) -> list[Row]:
    late = [row for row in run.diverged if row["diverged_at"] > 1]
    return [*run.recent("energy_train", "energy_data", "energy_std"), *late]


START = Check("a finite start", lambda run: run.diverged, _diverged_at, "below", 1.5, _starts_badly)
DEAD = Check("gradients", lambda run: [r for r in run.rows if "live_weights" in r], live_share, "below", 0.02, _dead)
SMALL_STEPS = Check("too small a learning rate", _after_warmup, relative_step, "below", 1e-4, _stands_still)
LARGE_STEPS = Check("too large a learning rate", _with_divergence, swing, "above", 5.0, _swings)
DRIFT = Check(
    "drift of energies",
    lambda run: run.recent("energy_train", "energy_data", "energy_std", fewest=LINES_OF_TREND),
    drift,
    "above",
    6.0,
    _drifts,
)
OVERFIT = Check(
    "overfitting",
    lambda run: run.recent("energy_train", "energy_held_out", "energy_std"),
    overfit,
    "above",
    1.0,
    _memorizes,
)
