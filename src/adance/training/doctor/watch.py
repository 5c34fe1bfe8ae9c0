"""The checks while a run trains."""

import logging

from adance.training.doctor.diagnose import diagnose
from adance.training.doctor.finding import Diagnosis
from adance.training.doctor.history import Row, without_gaps
from adance.training.run_folder import RunFolder

EARLY = range(50, 201, 50)
"""Steps at which a run is looked at in any case."""

KEPT = 50
"""Lines that are kept of the beginning, and of the end: a look takes the same time however long the run is."""

log = logging.getLogger("adance")


class Watch:
    """Looks at every line of metrics, and warns once of each cause.

    Args:
        folder: The run folder, whose config is read at the first look.

    Attributes:
        diagnosis: The result of the last look.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.diagnosis: Diagnosis | None = None
        self._rows: list[Row] = []
        self._said: set[str] = set()

    def look(self, row: Row) -> None:
        """Add a line, whose numbers may be non-finite, and make all checks.

        Of the line of a divergence there is no warning: the error says the cause.
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
