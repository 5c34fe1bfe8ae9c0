"""Runs all checks on a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from adance.training.doctor.finding import Diagnosis
from adance.training.doctor.history import History, Row
from adance.training.doctor.of_model import DEAD, DRIFT, LARGE_STEPS, OVERFIT, SMALL_STEPS, START
from adance.training.doctor.of_noise import COVERAGE, FLAT, REACH, STEEP

CHECKS = (START, DEAD, SMALL_STEPS, COVERAGE, REACH, DRIFT, LARGE_STEPS, FLAT, STEEP, OVERFIT)
"""All checks; of two findings that are equally severe, the one whose check is earlier is the likelier cause."""


def diagnose(rows: Sequence[Row], config: Mapping[str, Any]) -> Diagnosis:
    """Run all checks for which ``rows``, the lines of ``metrics.jsonl``, suffice.

    Args:
        rows: The lines, in order of their steps.
        config: The run's config, as in ``config.yaml``.
    """
    run = History(rows, config)
    looked_at = [(check, check.rows(run)) for check in CHECKS]
    made = [(check, lines) for check, lines in looked_at if lines]
    findings = [found for check, lines in made if (found := check.finding(run, lines)) is not None]
    findings.sort(key=lambda finding: -finding.severity)
    step = int(rows[-1]["step"]) if rows else 0
    return Diagnosis(tuple(findings), tuple(check.name for check, _ in made), len(rows), step, not run.recent())
