"""What is wrong with a run, the evidence, and what to change."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal[1, 2, 3]


@dataclass(frozen=True)
class Finding:
    """A likely cause of poor learning.

    Attributes:
        cause: The cause, in a few words.
        evidence: The metrics that point to it, with their values.
        cure: The setting to change, and how.
        severity: 3 if nothing is learned, 2 if what is learned is wrong, 1 if learning is slow.
    """

    cause: str
    evidence: str
    cure: str
    severity: Severity

    def __str__(self) -> str:
        """One line."""
        return f"{self.cause}: {self.evidence}. Try: {self.cure}"


@dataclass(frozen=True)
class Diagnosis:
    """The result of all checks on a run.

    Attributes:
        findings: What was found, the likeliest cause first.
        checked: The names of the checks for which the run has logged enough.
        lines: Number of lines that were read.
        step: The step of the last line, or 0 without lines.
        is_early: Whether there are too few lines for most checks.
    """

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    lines: int
    step: int
    is_early: bool

    def __str__(self) -> str:
        """One line for each finding, or one that says what was checked."""
        if self.findings:
            return "\n".join(map(str, self.findings))
        read = f"{self.lines} line{'' if self.lines == 1 else 's'} of metrics up to step {self.step}"
        early = "; most checks need 3 lines from step 100 on" if self.is_early else ""
        return f"nothing found in {read}; checked: {', '.join(self.checked) or 'nothing'}{early}"
