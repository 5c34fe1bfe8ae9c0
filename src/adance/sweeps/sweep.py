"""Running the jobs of a sweep."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import joblib
from joblib.externals.loky.process_executor import BrokenProcessPool

from adance.sweeps.backends import parallel
from adance.sweeps.job import ENDINGS, Job, Outcome, read_outcome
from adance.sweeps.worker import Work, work

TRIES = 3


def run_jobs(
    jobs: Sequence[Job], train: Work, evaluate: Work | None = None, *, backend: str = "loky", processes: int = 1
) -> list[Outcome]:
    """Bring every job to its end; what has ended already is kept, and what is half done goes on.

    A process that dies (killed, or out of memory) takes its pool with it: a new one goes on with what is left, and a
    run during which that happened three times is left alone.

    Args:
        jobs: The runs.
        train: Trains a run, or goes on with one that is half done.
        evaluate: Evaluates a trained run, unless that has been done.
        backend: ``loky``, ``ray`` or ``dask``.
        processes: How many at a time.

    Raises:
        InputError: The backend is unknown or not installed.
    """
    outcomes: dict[str, Outcome] = {}
    deaths = dict.fromkeys((job.name for job in jobs), 0)
    while left := [job for job in jobs if job.name not in outcomes]:
        left.sort(key=lambda job: deaths[job.name])
        try:
            outcomes |= {found.name: found for found in _run(left, train, evaluate, backend, processes)}
        except BrokenProcessPool:
            outcomes |= _after_death(left, deaths)
    return [outcomes[job.name] for job in jobs]


def _run(jobs: list[Job], train: Work, evaluate: Work | None, backend: str, processes: int) -> list[Outcome]:
    if backend == "loky" and processes == 1:
        return _in_turn(jobs, train, evaluate)
    with parallel(backend, processes) as run:
        return list(run(joblib.delayed(work)(job, os.getpid(), Path.cwd(), train, evaluate) for job in jobs))


def _in_turn(jobs: list[Job], train: Work, evaluate: Work | None) -> list[Outcome]:
    """One after another in this process, until all are done or Ctrl-C ends one: then the others are left alone."""
    outcomes: list[Outcome] = []
    for job in jobs:
        if any(outcome.status == "interrupted" for outcome in outcomes):
            outcomes.append(read_outcome(job.name, job.values, job.folder))
        else:
            outcomes.append(work(job, os.getpid(), Path.cwd(), train, evaluate))
    return outcomes


def _after_death(jobs: list[Job], deaths: dict[str, int]) -> dict[str, Outcome]:
    """Count the death against the runs that had begun and not ended, and give up those with too many."""
    given_up = {}
    found = {job.name: read_outcome(job.name, job.values, job.folder) for job in jobs}
    open_jobs = [job for job in jobs if found[job.name].status not in ENDINGS]
    for job in [job for job in open_jobs if (job.folder / ".lock").exists()] or open_jobs or jobs:
        deaths[job.name] += 1
        if deaths[job.name] == TRIES:
            message = f"its process died {TRIES} times: out of memory?"
            given_up[job.name] = replace(found[job.name], status="failed", message=message)
    return given_up
