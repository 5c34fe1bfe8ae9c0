"""Where the processes of a sweep run: joblib's own, or a ray or dask cluster."""

import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import joblib
from joblib.externals.loky.process_executor import BrokenProcessPool

from adance.errors import InputError

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function and its arguments, as made by ``joblib.delayed``."""

Run = Callable[[Iterable[Call]], list[Any]]
"""Makes calls and returns their results in order."""

BACKENDS = ("loky", "ray", "dask")
SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def parallel(backend: str, jobs: int) -> Iterator[Run]:
    """Yield a function that makes calls in ``jobs`` processes and returns their results in order.

    ``ray`` joins the cluster at ``RAY_ADDRESS`` and ``dask`` the one at ``DASK_SCHEDULER_ADDRESS``; if the variable is
    not set, each starts a cluster on this machine.

    Raises:
        InputError: The backend is unknown or not installed.
        BrokenProcessPool: A process died, and the backend does not replace it.
    """
    if backend not in BACKENDS:
        raise InputError(f"unknown backend {backend!r}: use one of {', '.join(BACKENDS)}")
    start = {"loky": _loky, "ray": _ray, "dask": _dask}[backend]
    try:
        with start(jobs) as run:
            yield run
    except ModuleNotFoundError as error:
        if error.name not in ("ray", "distributed", "dask"):
            raise
        raise InputError(f"--backend {backend} is not installed: pip install 'adance[{backend}]'") from None


@contextmanager
def _loky(jobs: int) -> Iterator[Run]:
    """Start processes that do not import modules from the current folder; Python 3.10 cannot prevent it."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
            yield _one_by_one()
    finally:
        del os.environ[SAFE_PATH]
        if before is not None:
            os.environ[SAFE_PATH] = before


@contextmanager
def _ray(jobs: int) -> Iterator[Run]:
    ray: Any = importlib.import_module("ray")  # mypy must not depend on whether it is installed
    ours = not ray.is_initialized()
    if ours:
        here = {"num_cpus": jobs, "include_dashboard": False}
        ray.init(**({} if os.environ.get("RAY_ADDRESS") else here))
    importlib.import_module("ray.util.joblib").register_ray()
    try:
        with joblib.parallel_config("ray", n_jobs=jobs):
            yield _one_by_one()
    except ray.exceptions.RayActorError as error:  # the error that loky raises for this
        raise BrokenProcessPool(str(error)) from None
    finally:
        if ours:
            ray.shutdown()


def _one_by_one() -> joblib.Parallel:
    return joblib.Parallel(batch_size=1, pre_dispatch="n_jobs")


@contextmanager
def _dask(jobs: int) -> Iterator[Run]:
    """Use dask itself: joblib's backend for it never returns from a call whose worker died too often."""
    distributed: Any = importlib.import_module("distributed")
    address = os.environ.get("DASK_SCHEDULER_ADDRESS")
    here = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(address) if address else distributed.Client(**here) as client:

        def run(calls: Iterable[Call]) -> list[Any]:
            futures = [client.submit(call, *args, **named, pure=False) for call, args, named in calls]
            distributed.wait(futures)
            try:
                found: list[Any] = client.gather(futures)
            except distributed.KilledWorker as error:  # the error that loky raises for this
                raise BrokenProcessPool(str(error)) from None
            return found

        yield run
