import os
import subprocess
import sys
import time

import pytest

from adance.sweeps import SweepFolder
from adance.sweeps.backends import SAFE_PATH, parallel
from adance.training.run_folder import RunFolder

IN_PROCESSES = """
import os, sys
sys.path.remove("")
import joblib
from adance.sweeps.backends import parallel
with parallel("loky", 2) as run:
    assert set(run(joblib.delayed(os.getcwd)() for _ in range(4))) == {os.getcwd()}
"""


@pytest.mark.cluster
@pytest.mark.parametrize("backend", ["ray", "dask"])
def test_a_cluster_gives_the_same_table(backend, sweep, monkeypatch):
    pytest.importorskip("ray" if backend == "ray" else "distributed")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    over = ["--over", "objective.interval=1,5", "--over", "seed=0"]
    here = sweep(*over, "--jobs", "2" if backend == "ray" else "1")
    there = sweep(*over, "--backend", backend, "--jobs", "2", out="cluster")
    assert here[0] == there[0] == 0
    assert len(here[1]) == 4  # head, rule and two rows
    assert here[1] == there[1]


@pytest.mark.cluster
@pytest.mark.parametrize(("backend", "allowed"), [("ray", ""), ("dask", "3"), ("dask", "0")])
def test_a_sweep_survives_a_killed_worker_of_a_cluster(backend, allowed, config, tmp_path, monkeypatch):
    pytest.importorskip("ray" if backend == "ray" else "distributed")
    psutil = pytest.importorskip("psutil")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if allowed:
        monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", allowed)
    out, seeds = tmp_path / "sweep", ",".join(map(str, range(8)))
    argv = ["sweep", "--config", str(config), "--out", str(out), "--over", f"seed={seeds}", "--steps", "300"]
    argv += ["--checkpoint_every", "20", "--backend", backend, "--jobs", "2"]
    process = subprocess.Popen([sys.executable, "-m", "adance", *argv], stderr=subprocess.PIPE, text=True)

    def in_training():
        """Processes that hold the lock of a run which has a checkpoint."""
        locks = {str(path.parents[1] / ".lock") for path in out.glob("*/checkpoints/00000040")}
        return [p for p in psutil.process_iter() if p.pid != process.pid and locks & _open_files(p)]

    worker = None
    while worker is None and process.poll() is None:
        half = len(list(out.glob("*/outcome.json"))) >= 3
        worker = next(iter(in_training() if half else []), None)
        time.sleep(0.02)
    assert worker is not None, process.communicate()[1]
    worker.kill()
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said
    runs = SweepFolder(out).read()["runs"]
    assert [run["status"] for run in runs] == ["done"] * 8
    for run in runs:
        assert [row["step"] for row in RunFolder(out / run["name"]).read_metrics()] == list(range(5, 301, 5))


def _open_files(process):
    import psutil

    try:
        return {file.path for file in process.open_files()}
    except psutil.Error:
        return set()


def test_a_backend_that_is_not_installed_is_named(sweep, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    status, _, err = sweep("--over", "seed=0", "--backend", "dask")
    assert status == 2
    assert "pip install 'adance[dask]'" in err


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs the safe path of Python 3.11")
def test_processes_import_nothing_from_the_current_folder(tmp_path):
    for name in ("joblib", "cloudpickle"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')")
    environment = {name: value for name, value in os.environ.items() if name != SAFE_PATH}
    ended = subprocess.run(
        [sys.executable, "-c", IN_PROCESSES], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert not (tmp_path / "imported").exists()
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("before", [None, "", "1"])
def test_the_environment_is_restored(before, monkeypatch):
    monkeypatch.delenv(SAFE_PATH, raising=False)
    if before is not None:
        monkeypatch.setenv(SAFE_PATH, before)
    with parallel("loky", 1):
        assert os.environ[SAFE_PATH] == "1"
    assert os.environ.get(SAFE_PATH) == before
