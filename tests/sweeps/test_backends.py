import pytest


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
    import sys

    monkeypatch.setitem(sys.modules, "distributed", None)
    status, _, err = sweep("--over", "seed=0", "--backend", "dask")
    assert status == 2
    assert "pip install 'adance[dask]'" in err
