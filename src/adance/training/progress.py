"""Progress: a bar with rate and time left on a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 5
SHOWN = ("loss", "energy_data", "energy_noise", "gradient_norm", "auc")


class TrainingProgress:
    """Shows how far training has come; use it as a context."""

    def __init__(self, first: int, steps: int, shown: bool = True) -> None:
        self.first, self.steps = first, steps
        self.began = self.said = time.monotonic()
        self.lines = shown and not sys.stderr.isatty()
        self.bar: Progress | None = None
        if shown and not self.lines:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = Progress(*columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True))
            self.task = self.bar.add_task("training", total=steps, completed=first, note="")

    def __enter__(self) -> "TrainingProgress":
        """Start the bar."""
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the bar."""
        if self.bar is not None:
            self.bar.stop()

    def advance(self, step: int) -> None:
        """Step ``step`` is done."""
        if self.bar is not None:
            self.bar.update(self.task, completed=step)
        elif self.lines and self._is_time():
            self._print(step)

    def say(self, text: str) -> None:
        """One line between the others."""
        if self.bar is not None:
            self.bar.console.print(text, highlight=False)
        elif self.lines:
            print(text, file=sys.stderr, flush=True)

    def report(self, step: int, metrics: dict[str, float]) -> None:
        """Show metrics."""
        note = "  ".join(f"{name} {metrics[name]:.4g}" for name in SHOWN if name in metrics)
        if self.bar is not None:
            self.bar.update(self.task, completed=step, note=f"{self._rate(step)}  {note}")
        elif self.lines and (step == self.steps or self._is_time()):
            self._print(step, note)

    def _is_time(self) -> bool:
        """Whether another line is due: after some seconds, in long runs after a twentieth of the time so far."""
        now = time.monotonic()
        return now - self.said > max(SECONDS_BETWEEN_LINES, (now - self.began) / 20)

    def _print(self, step: int, note: str = "") -> None:
        self.said = time.monotonic()
        left = self._seconds(step) * (self.steps - step)
        line = f"step {step}/{self.steps}  {self._rate(step)}  {left:.0f} s left  {note}"
        print(line.rstrip(), file=sys.stderr, flush=True)

    def _rate(self, step: int) -> str:
        seconds = self._seconds(step)
        return f"{1 / seconds:.1f} steps/s" if seconds < 1 else f"{seconds:.2f} s/step"

    def _seconds(self, step: int) -> float:
        """Of a step, so far."""
        return (time.monotonic() - self.began) / max(1, step - self.first)
