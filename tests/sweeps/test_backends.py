import os
import subprocess
import sys

import pytest

from adance.sweeps.backends import SAFE_PATH, parallel

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
