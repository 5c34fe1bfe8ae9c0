"""What a process of a sweep does with one run."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from adance.errors import DivergedError, InputError
from adance.registry import trust, trust_restored
from adance.sweeps.job import FINAL, Job, Outcome, read_outcome, write_outcome

Work = Callable[[Job], None]
"""Trains or resumes the run of a job; a second function of this type may evaluate it."""

MakeContext = Callable[[], AbstractContextManager[Any]]
NO_CONTEXT: MakeContext = nullcontext

LOCK_TIMEOUT = 60
"""Seconds to wait for the lock of a run."""

log = logging.getLogger("adance")


def work(
    job: Job, parent: int, home: Path, train: Work, evaluate: Work | None = None, context: MakeContext = NO_CONTEXT
) -> Outcome:
    """Train the run of ``job`` to its end, unless it has ended already, and return its outcome; raises nothing.

    Args:
        job: The run.
        parent: Process number of the sweep.
        home: The sweep's working directory, which paths in the settings are relative to.
        train: Trains a run, or resumes an unfinished one.
        evaluate: Evaluates a trained run, unless its evaluation is current.
        context: Makes a context in which all of this happens.
    """
    began = time.monotonic()
    with context():
        try:
            os.chdir(home)
            outcome = _train_and_evaluate(job, parent, train, evaluate)
        except DivergedError as error:
            write_outcome(job.folder, "diverged", str(error))
            outcome = _unfinished(job, "diverged", str(error))
        except InputError as error:
            outcome = _unfinished(job, "refused", str(error))
        except KeyboardInterrupt:
            outcome = _unfinished(job, "interrupted", "interrupted; start the sweep again to continue")
        except Exception as error:  # one failed run must not end the others
            log.debug("where the run failed:", exc_info=True)
            outcome = _unfinished(job, "failed", f"{type(error).__name__}: {error}")
        note = f" ({outcome.message})" if outcome.message else f" after {time.monotonic() - began:.0f} s"
        log.log(logging.WARNING if outcome.message else logging.INFO, f"{outcome.name}: {outcome.status}{note}")
    return outcome


def _train_and_evaluate(job: Job, parent: int, train: Work, evaluate: Work | None) -> Outcome:
    with trust_restored(), _one_thread(), _ended_with(parent), _locked(job.folder):
        trust(*job.trusted)
        if read_outcome(job.name, job.values, job.folder).status not in FINAL:
            log.info(f"{job.name}: training")
            train(job)
            write_outcome(job.folder, "done", "")
        done, problem = read_outcome(job.name, job.values, job.folder), ""
        if evaluate is not None and done.status == "done":
            try:
                evaluate(job)
            except InputError as error:  # the run is done all the same
                problem = f"not evaluated: {' '.join(str(error).split())}"
        return replace(read_outcome(job.name, job.values, job.folder), message=problem or done.message)


def _unfinished(job: Job, status: str, message: str) -> Outcome:
    found = read_outcome(job.name, job.values, job.folder)
    return replace(found, status=status, message=" ".join(message.split()))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread: several processes on one machine are faster that way."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _ended_with(parent: int) -> Iterator[None]:
    """End this process soon after the sweep that started it was killed, so that no orphan keeps training."""
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
def _locked(folder: Path) -> Iterator[None]:
    """Hold the run's lock, which the system releases when the process dies.

    Raises:
        InputError: Another process has held it for a minute.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / ".lock").acquire(timeout=LOCK_TIMEOUT, poll_interval=0.1)
    except Timeout:
        raise InputError(f"{folder} is being trained by another process") from None
    with lock:
        yield
