"""What a run has logged so far, as the checks read it."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, float]

SETTLED = 100
"""The first step whose metrics are informative: before it, the network has hardly been trained."""

RECENT = 10
"""Number of last lines that describe the present state of a run."""

REFRESHES = 10
"""Snapshots that the chains must have followed before their metrics are informative."""

FEWEST = 3
"""Minimum number of lines that a check needs."""


@dataclass(frozen=True)
class History:
    """The lines of ``metrics.jsonl``, and the config of the run.

    Attributes:
        rows: The lines, in order of their steps.
        config: The config, as in ``config.yaml``.
    """

    rows: Sequence[Row]
    config: Mapping[str, Any]

    def settled(self, *names: str) -> list[Row]:
        """The lines from step 100 on that have all of ``names``, without the line of a divergence."""
        return [
            row
            for row in self.rows
            if row["step"] >= SETTLED and "diverged_at" not in row and all(name in row for name in names)
        ]

    def recent(self, *names: str, fewest: int = FEWEST, since: int = SETTLED) -> list[Row]:
        """The last ten of the settled lines from step ``since`` on; none if there are fewer than ``fewest``."""
        rows = [row for row in self.settled(*names) if row["step"] >= since]
        return rows[-RECENT:] if len(rows) >= fewest else []

    @property
    def diverged(self) -> list[Row]:
        """The line that training wrote when it diverged, if it did."""
        return [row for row in self.rows[-1:] if "diverged_at" in row]

    @property
    def has_chains(self) -> bool:
        """Whether the noise comes from Markov chains."""
        return any("restarted_chains" in row for row in self.rows)

    @property
    def chains_settled(self) -> int:
        """The step by which the chains have followed enough snapshots of the model."""
        interval = self.of_objective("interval")
        return max(SETTLED, REFRESHES * interval) if isinstance(interval, int) else SETTLED

    @property
    def objective(self) -> str:
        """The name of the objective's class."""
        return str(self.config["objective"].get("class_path", "")).rpartition(".")[2]

    def of_objective(self, name: str) -> Any:
        """An argument of the objective, or ``None`` if there is none of this name."""
        return (self.config["objective"].get("init_args") or {}).get(name)

    def of_sampler(self, name: str) -> Any:
        """An argument of the chains' kernel, or ``None`` if there is none of this name."""
        sampler = self.of_objective("sampler")
        return (sampler.get("init_args") or {}).get(name) if isinstance(sampler, Mapping) else None


def without_gaps(row: Row) -> Row:
    """The line without non-finite numbers, as when it is read from ``metrics.jsonl``."""
    return {name: value for name, value in row.items() if math.isfinite(value)}


def values(rows: Sequence[Row], name: str) -> list[float]:
    """One metric, in order of the steps."""
    return [row[name] for row in rows]


def median(rows: Sequence[Row], name: str) -> float:
    """The median of one metric."""
    return statistics.median(values(rows, name))
