"""Progress bars on a terminal; elsewhere callers log plain lines instead."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn


def progress_bar(shown: bool = True, *columns: ProgressColumn) -> Progress:
    """A progress bar on standard error, ``disable``-d if it is not to be ``shown`` or standard error is no terminal.

    Args:
        shown: Whether to show anything.
        *columns: What a line shows; by default the description, a bar, steps done, time left and the field ``note``.
    """
    default = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    columns = columns or (*default, TextColumn("{task.fields[note]}"))
    return Progress(*columns, console=Console(stderr=True), disable=not (shown and sys.stderr.isatty()))
