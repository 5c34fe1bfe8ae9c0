"""Checks of the noise that data are distinguished from, and of the log-ratio."""

import math
import statistics

from adance.training.doctor.check import Check, Rows
from adance.training.doctor.finding import Finding
from adance.training.doctor.history import History, Row, median, values

NARROW, WIDE = 0.05, 30.0
"""Bounds on the standard deviation of the log-ratio."""

DISTINCT = 0.8
"""With an AUC above this, energies distinguish data from noise."""

SHORT = 0.1
"""The gradient must move a chain by more than this, in the units of the model, to matter."""

MIN_ACCEPTANCE = 0.1
"""With a lower acceptance rate, chains hardly move."""


def overlap(rows: Rows) -> float:
    """The largest 1 − AUC: the share of pairs in which noise has a lower energy than data, ties counted half."""
    return max(1 - row["auc"] for row in rows)


def _fixed_noise(run: History) -> list[Row]:
    return [] if run.has_chains else run.recent("auc", "ratio_std", "effective_sample_share")


def _does_not_cover(run: History, rows: Rows, found: float) -> Finding:
    share = median(rows, "effective_sample_share")
    signs = f"the AUC is {_auc(rows)}, and the effective share of noise samples is {share:.2g}"
    cure = "use a noise close to the data, such as objective.noise=flow, or AdaNCE, whose noise follows the model"
    if run.objective in ("ACE", "FCE"):
        cure = "raise adversary_lr, so that the noise follows the model"
    return Finding("noise does not cover the data", signs, cure, 3)


def overlap_with_chains(rows: Rows) -> float:
    """The largest 1 − AUC; infinite if the log-ratio is so flat that the model outruns its chains."""
    return math.inf if _is_flat(rows) else overlap(rows)


def _is_flat(rows: Rows) -> bool:
    spreads = _spreads(rows)
    return bool(spreads) and statistics.median(spreads) < NARROW


def _spreads(rows: Rows) -> list[float]:
    """Standard deviations of the log-ratio, without those that are exactly 0 because the noise is the model itself."""
    return [row["ratio_std"] for row in rows if row.get("ratio_std", 0.0) > 0]


def _never_reach(run: History, rows: Rows, found: float) -> Finding:
    gap = statistics.median(row["energy_noise"] - row["energy_data"] for row in rows)
    signs = f"the AUC is {_auc(rows)}, and the ends of chains have energies {gap:.3g} above those of data"
    travel = _travel(run, rows)
    if travel is not None:
        signs += f"; in {run.of_sampler('steps')} steps the gradient moves a chain by {travel:.2g}"
    return Finding("chains never reach the data", signs, _cure_of_chains(run, rows, travel), 3)


def _travel(run: History, rows: Rows) -> float | None:
    """How far the gradient moves a chain, if its kernel has a fixed step size."""
    steps, size = run.of_sampler("steps"), run.of_sampler("step_size")
    if not (isinstance(steps, int) and isinstance(size, (int, float))):
        return None
    return steps * size * median(rows, "gradient_norm")


def _cure_of_chains(run: History, rows: Rows, travel: float | None) -> str:
    size, noise = run.of_sampler("step_size"), run.of_sampler("noise_std")
    acceptance = median(rows, "acceptance")
    if acceptance < MIN_ACCEPTANCE:
        return f"lower objective.sampler.step_size: {acceptance:.1%} of the proposals are accepted"
    if travel is not None and travel < SHORT:
        return f"raise objective.sampler.step_size (now {size:g}) or objective.sampler.steps"
    longer = "raise objective.sampler.steps"
    if isinstance(noise, (int, float)):
        return f"lower objective.sampler.noise_std (now {noise:g}; 0.005 by default for images), or {longer}"
    return f"{longer}, or lower objective.rejuvenation"


def _ratio_of_chains(run: History) -> list[Row]:
    rows = run.recent("auc", "ratio_std", since=run.chains_settled) if run.has_chains else []
    return rows if _spreads(rows) else []


def width(rows: Rows) -> float:
    """The median standard deviation of the log-ratio."""
    return statistics.median(_spreads(rows))


def width_if_distinct(rows: Rows) -> float:
    """The median standard deviation of the log-ratio; infinite if energies do not distinguish data from noise."""
    return width(rows) if median(rows, "auc") > DISTINCT else math.inf


def _limits_nothing(run: History, rows: Rows, found: float) -> Finding:
    signs = f"energies distinguish data from noise (median AUC {median(rows, 'auc'):.3f}), but the log-ratio has a "
    signs += f"standard deviation of only {found:.2g}, so nothing limits how far one snapshot's chains move the model"
    return Finding("ratio temperature too large", signs, _cure_of_temperature(run, "lower"), 2)


def _one_row_decides(run: History, rows: Rows, found: float) -> Finding:
    signs = f"the log-ratio has a standard deviation of {found:.3g}, so one or two rows of a batch decide the step"
    return Finding("ratio temperature too small", signs, _cure_of_temperature(run, "raise"), 2)


def _cure_of_temperature(run: History, verb: str) -> str:
    now = run.of_objective("ratio_temperature")
    auto = ", or set it to auto, which follows the energies of Langevin chains" if now != "auto" else ""
    return f"{verb} objective.ratio_temperature{'' if now is None else f' (now {now})'}{auto}"


def _auc(rows: Rows) -> str:
    return f"at least {min(values(rows, 'auc')):.4f} in the last {len(rows)} lines"


COVERAGE = Check("whether the noise covers the data", _fixed_noise, overlap, "below", 0.005, _does_not_cover)
REACH = Check(
    "whether chains reach the data",
    lambda run: run.recent(
        "auc", "energy_noise", "energy_data", "gradient_norm", "acceptance", since=run.chains_settled
    ),
    overlap_with_chains,
    "below",
    0.005,
    _never_reach,
)
FLAT = Check("too large a ratio temperature", _ratio_of_chains, width_if_distinct, "below", NARROW, _limits_nothing)
STEEP = Check(
    "too small a ratio temperature",
    lambda run: [] if run.of_objective("center") is False else _ratio_of_chains(run),
    width,
    "above",
    WIDE,
    _one_row_decides,
)
