"""Sweeps: the same training at every combination of some settings' values, each in its own run folder."""

from adance.sweeps.axes import Axis, combinations, run_names
from adance.sweeps.folder import SweepFolder
from adance.sweeps.job import Job, Outcome
from adance.sweeps.sweep import run_jobs
from adance.sweeps.table import Group, as_markdown, summarize

__all__ = [
    "Axis",
    "Group",
    "Job",
    "Outcome",
    "SweepFolder",
    "as_markdown",
    "combinations",
    "run_jobs",
    "run_names",
    "summarize",
]
