"""Running the jobs of a sweep."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import joblib
from joblib.externals.loky.process_executor import BrokenProcessPool

from adance.sweeps.backends import parallel
from adance.sweeps.job import FINAL, Job, Outcome, read_outcome
from adance.sweeps.worker import NO_CONTEXT, MakeContext, Work, work

MAX_DEATHS = 3
"""A run is given up after this many deaths of its process."""


def run_jobs(
    jobs: Sequence[Job],
    train: Work,
    evaluate: Work | None = None,
    *,
    backend: str = "loky",
    processes: int = 1,
    context: MakeContext = NO_CONTEXT,
) -> list[Outcome]:
    """Run every job to its end. Runs that have ended are kept; unfinished ones resume.

    If a process dies (killed, or out of memory), a new pool of processes continues with the runs that are left. A run
    during which that happened three times is given up.

    Args:
        jobs: The runs.
        train: Trains a run, or resumes an unfinished one.
        evaluate: Evaluates a trained run, unless its evaluation is current.
        backend: ``loky``, ``ray`` or ``dask``.
        processes: Number of runs at a time.
        context: Makes a context in which each job runs if it has a process of its own.

    Raises:
        InputError: The backend is unknown or not installed.
    """
    outcomes: dict[str, Outcome] = {}
    deaths = dict.fromkeys((job.name for job in jobs), 0)
    while left := [job for job in jobs if job.name not in outcomes]:
        left.sort(key=lambda job: deaths[job.name])
        try:
            if backend == "loky" and processes == 1:
                found = _run_in_turn(left, train, evaluate)
            else:
                with parallel(backend, processes) as run:
                    here = os.getpid(), Path.cwd()
                    found = run(joblib.delayed(work)(job, *here, train, evaluate, context) for job in left)
            outcomes |= {outcome.name: outcome for outcome in found}
        except BrokenProcessPool:
            outcomes |= _after_death(left, deaths)
    return [outcomes[job.name] for job in jobs]


def _run_in_turn(jobs: list[Job], train: Work, evaluate: Work | None) -> list[Outcome]:
    """Run jobs one after another in this process, until all are done or Ctrl-C ends one."""
    outcomes: list[Outcome] = []
    for job in jobs:
        if any(outcome.status == "interrupted" for outcome in outcomes):
            outcomes.append(read_outcome(job.name, job.values, job.folder))
        else:
            outcomes.append(work(job, os.getpid(), Path.cwd(), train, evaluate))
    return outcomes


def _after_death(jobs: list[Job], deaths: dict[str, int]) -> dict[str, Outcome]:
    """Count the death of a process for the runs that were in progress, and give up those with too many."""
    given_up = {}
    found = {job.name: read_outcome(job.name, job.values, job.folder) for job in jobs}
    open_jobs = [job for job in jobs if found[job.name].status not in FINAL]
    for job in [job for job in open_jobs if (job.folder / ".lock").exists()] or open_jobs or jobs:
        deaths[job.name] += 1
        if deaths[job.name] == MAX_DEATHS:
            message = f"its process died {MAX_DEATHS} times: out of memory?"
            given_up[job.name] = replace(found[job.name], status="failed", message=message)
    return given_up
