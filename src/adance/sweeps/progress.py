"""Progress of a sweep: a bar for each running run on a terminal, a log line every few seconds elsewhere."""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml
from rich.progress import Progress

from adance.progress import progress_bar
from adance.sweeps.job import Job
from adance.training.run_folder import RunFolder

SECONDS_BETWEEN_LINES = 5.0

log = logging.getLogger("adance")


@contextmanager
def sweep_progress(jobs: Sequence[Job], shown: bool = True, every: float = SECONDS_BETWEEN_LINES) -> Iterator[None]:
    """While the block runs, show every few seconds the step of each run that has advanced.

    Steps are read from ``metrics.jsonl``, so this works wherever the runs are trained; a step shows once it is logged.

    Args:
        jobs: The runs.
        shown: Whether to show anything.
        every: Seconds between two looks.
    """
    if not shown:
        yield
        return
    steps = {job.folder: int(yaml.safe_load(job.config)["steps"]) for job in jobs}
    over = threading.Event()
    with progress_bar() as bar:
        watch = threading.Thread(target=_watch, args=(bar, steps, every, over), daemon=True)
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()


def last_step(folder: Path) -> int:
    """The last step in the ``metrics.jsonl`` of the run in ``folder``; 0 if there is none."""
    rows = RunFolder(folder).read_metrics()
    return int(rows[-1]["step"]) if rows else 0


def _watch(bar: Progress, steps: Mapping[Path, int], every: float, over: threading.Event) -> None:
    before = {folder: last_step(folder) for folder in steps}
    tasks = {run: bar.add_task(run.name, total=total, visible=False, note="") for run, total in steps.items()}
    while not over.wait(every):
        now = {folder: last_step(folder) for folder in steps if not (folder / "outcome.json").exists()}
        advanced = {run: step for run, step in now.items() if step != before[run]}
        before |= now
        for run, task in tasks.items():
            visible = run in advanced or (run in now and bar.tasks[task].visible)
            bar.update(task, completed=before[run], visible=visible)
        if advanced and bar.disable:
            log.info("  ".join(f"{run.name}: step {step}/{steps[run]}" for run, step in advanced.items()))
