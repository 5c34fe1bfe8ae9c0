"""Checks a run while it trains."""

import logging

from adance.training.doctor.diagnose import diagnose
from adance.training.doctor.finding import Diagnosis
from adance.training.doctor.history import Row, without_gaps
from adance.training.run_folder import RunFolder

EARLY = range(50, 201, 50)
"""Steps at which a run is checked even if it logs no line there."""

KEPT = 50
"""Number of first and of last lines that are kept, so that a check of a long run takes no longer."""

log = logging.getLogger("adance")


class Watch:
    """Checks every line of metrics, and warns once about each cause.

    Args:
        folder: The run folder, whose config is read at the first check.

    Attributes:
        diagnosis: The result of the last check.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.diagnosis: Diagnosis | None = None
        self._rows: list[Row] = []
        self._said: set[str] = set()

    def look(self, row: Row) -> None:
        """Add a line, whose numbers may be non-finite, and run all checks.

        The line of a divergence gives no warning, because the error names the cause.
        """
        if not self._rows:
            self._config, self._rows = self.folder.read_config(), list(self.folder.read_metrics())
        self._rows.append(without_gaps(row))
        del self._rows[KEPT:-KEPT]
        self.diagnosis = diagnose(self._rows, self._config)
        for finding in self.diagnosis.findings:
            if finding.cause not in self._said and "diverged_at" not in row:
                self._said.add(finding.cause)
                log.warning(f"step {row['step']}: {finding}")
