"""A check: one number of a run, and the bound beyond which it points to a cause."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from adance.training.doctor.finding import Finding
from adance.training.doctor.history import History, Row

Rows = Sequence[Row]


@dataclass(frozen=True)
class Check:
    """A check for one cause.

    Attributes:
        name: What is checked.
        rows: Selects the lines to check; none if the run has not logged enough.
        measure: Computes the number from these lines.
        sick: The side of the bound on which the number points to the cause.
        bound: The bound.
        explain: Describes the finding, from the run, the lines and the number.
    """

    name: str
    rows: Callable[[History], Rows]
    measure: Callable[[Rows], float]
    sick: Literal["above", "below"]
    bound: float
    explain: Callable[[History, Rows, float], Finding]

    def finding(self, run: History, rows: Rows) -> Finding | None:
        """The finding in these lines, if there is one."""
        value = self.measure(rows)
        is_sick = value > self.bound if self.sick == "above" else value < self.bound
        return self.explain(run, rows, value) if is_sick else None
