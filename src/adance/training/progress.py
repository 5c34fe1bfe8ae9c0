"""Progress of training: a bar with rate and time left on a terminal, log lines elsewhere."""

import logging
import time
from types import TracebackType

from adance.progress import progress_bar

SECONDS_BETWEEN_LINES = 5
SHOWN_METRICS = ("loss", "energy_data", "energy_noise", "gradient_norm", "auc", "sample_distance")

log = logging.getLogger("adance")


class TrainingProgress:
    """Shows how far training has come; use it as a context manager."""

    def __init__(self, first: int, steps: int, shown: bool = True) -> None:
        self.first, self.steps, self.shown = first, steps, shown
        self.began = self.logged = time.monotonic()
        self.bar = progress_bar(shown)
        self.task = self.bar.add_task("training", total=steps, completed=first, note="")

    def __enter__(self) -> "TrainingProgress":
        """Start the bar."""
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the bar."""
        self.bar.stop()

    def advance(self, step: int) -> None:
        """Show that ``step`` steps are done."""
        self.bar.update(self.task, completed=step)
        if self.bar.disable and self._is_due():
            self._log(step)

    def say(self, text: str) -> None:
        """Log one line, unless nothing is shown."""
        if self.shown:
            log.info(text)

    def report(self, step: int, metrics: dict[str, float]) -> None:
        """Show the metrics of a step."""
        note = "  ".join(f"{name} {metrics[name]:.4g}" for name in SHOWN_METRICS if name in metrics)
        self.bar.update(self.task, completed=step, note=f"{self._rate(step)}  {note}")
        if self.bar.disable and (step == self.steps or self._is_due()):
            self._log(step, note)

    def _is_due(self) -> bool:
        """Whether to log another line: after 5 seconds, in long runs after a twentieth of the time so far."""
        now = time.monotonic()
        return now - self.logged > max(SECONDS_BETWEEN_LINES, (now - self.began) / 20)

    def _log(self, step: int, note: str = "") -> None:
        self.logged = time.monotonic()
        left = self._seconds_per_step(step) * (self.steps - step)
        self.say(f"step {step}/{self.steps}  {self._rate(step)}  {left:.0f} s left  {note}".rstrip())

    def _rate(self, step: int) -> str:
        seconds = self._seconds_per_step(step)
        return f"{1 / seconds:.1f} steps/s" if seconds < 1 else f"{seconds:.2f} s/step"

    def _seconds_per_step(self, step: int) -> float:
        return (time.monotonic() - self.began) / max(1, step - self.first)
