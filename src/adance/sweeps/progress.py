"""How far the runs of a sweep are, said now and then while they train."""

import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from adance.sweeps.job import Job

SECONDS_BETWEEN_LINES = 5.0
_TAIL = 4096


@contextmanager
def steps_told(jobs: Sequence[Job], every: float = SECONDS_BETWEEN_LINES) -> Iterator[None]:
    """Meanwhile, a line on standard error every few seconds: the step of each run that went on since the last one.

    Steps are read from ``metrics.jsonl``, so it is the same wherever the runs are trained, and none is told before it
    is logged. A run whose settings say ``quiet`` is not told of.
    """
    configs = {job.folder: yaml.safe_load(job.config) for job in jobs}
    steps = {folder: int(config["steps"]) for folder, config in configs.items() if not config.get("quiet")}
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(steps, every, over), daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()


def last_step(folder: Path) -> int:
    """The last step in the ``metrics.jsonl`` of the run in ``folder``; 0 where there is none."""
    try:
        with (folder / "metrics.jsonl").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            found = re.findall(rb'^\{"step": (\d+)', file.read(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[-1]) if found else 0


def _watch(steps: Mapping[Path, int], every: float, over: threading.Event) -> None:
    before = {folder: last_step(folder) for folder in steps}
    while not over.wait(every):
        now = {folder: last_step(folder) for folder in steps if not (folder / "outcome.json").exists()}
        told = [f"{run.name}: step {step}/{steps[run]}" for run, step in now.items() if step != before[run]]
        before |= now
        if told:
            print("  ".join(told), file=sys.stderr, flush=True)
