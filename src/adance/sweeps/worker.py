"""What a process of a sweep does with one run."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from adance.errors import DivergedError, InputError
from adance.registry import trust, trust_restored
from adance.sweeps.job import ENDINGS, Job, Outcome, read_outcome, write_ending

Work = Callable[[Job], None]
"""Trains a job's run, or goes on with it; a second function of this type may evaluate it."""

SECONDS_TO_WAIT = 60


def work(job: Job, parent: int, home: Path, train: Work, evaluate: Work | None = None) -> Outcome:
    """Train the run of ``job`` to its end, unless it has ended already, and say what came of it; raises nothing.

    Args:
        job: The run.
        parent: Process number of the sweep.
        home: The sweep's working directory, which paths in the settings are relative to.
        train: Trains a run, or goes on with one that is half done.
        evaluate: Evaluates a trained run, unless that has been done.
    """
    began = time.monotonic()
    try:
        os.chdir(home)
        with _trusting(job.trusted), _one_thread(), _ended_with(parent), _alone(job.folder):
            if read_outcome(job.name, job.values, job.folder).status not in ENDINGS:
                print(f"{job.name}: training", file=sys.stderr, flush=True)
                train(job)
                write_ending(job.folder, "done", "")
            done = read_outcome(job.name, job.values, job.folder)
            problem = _evaluate(evaluate, job) if evaluate is not None and done.status == "done" else ""
        outcome = replace(read_outcome(job.name, job.values, job.folder), message=problem or done.message)
    except DivergedError as error:
        write_ending(job.folder, "diverged", str(error))
        outcome = _unfinished(job, "diverged", str(error))
    except InputError as error:
        outcome = _unfinished(job, "refused", str(error))
    except KeyboardInterrupt:
        outcome = _unfinished(job, "interrupted", "interrupted; start the sweep again to go on")
    except Exception as error:  # a run that fails must not end the others
        outcome = _unfinished(job, "failed", f"{type(error).__name__}: {error}")
    _say(outcome, time.monotonic() - began)
    return outcome


def _evaluate(evaluate: Work, job: Job) -> str:
    """Evaluate a run, and say what went wrong: it is done all the same."""
    try:
        evaluate(job)
    except InputError as error:
        return f"not evaluated: {' '.join(str(error).split())}"
    return ""


def _unfinished(job: Job, status: str, message: str) -> Outcome:
    found = read_outcome(job.name, job.values, job.folder)
    return Outcome(job.name, job.values, status, " ".join(message.split()), found.metrics, found.measurements)


def _say(outcome: Outcome, seconds: float) -> None:
    note = f" ({outcome.message})" if outcome.message else f" after {seconds:.0f} s"
    print(f"{outcome.name}: {outcome.status}{note}", file=sys.stderr, flush=True)


@contextmanager
def _trusting(names: Iterable[str]) -> Iterator[None]:
    """Trust what the sweep does, in this run and not in the next of another sweep in the same process."""
    with trust_restored():
        trust(*names)
        yield


@contextmanager
def _one_thread() -> Iterator[None]:
    """Several processes side by side are quicker with one thread each."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _ended_with(parent: int) -> Iterator[None]:
    """End this process soon after the sweep that started it was killed, so that none trains on unasked."""
    if os.getppid() != parent:  # the sweep itself, or a process of a cluster, which has its own rules
        yield
        return
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            if os.getppid() != parent:
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the run's lock, which the system takes back from a process that dies.

    Raises:
        InputError: Another process has held it for a minute.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / ".lock").acquire(timeout=SECONDS_TO_WAIT, poll_interval=0.1)
    except Timeout:
        raise InputError(f"{folder} is being trained by another process") from None
    with lock:
        yield
