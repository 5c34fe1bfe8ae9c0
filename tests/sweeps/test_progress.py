import io
import logging
import time

import pytest

from adance.sweeps.job import Job, write_outcome
from adance.sweeps.progress import last_step, sweep_progress
from adance.training.run_folder import RunFolder


@pytest.fixture
def job(tmp_path):
    def make(name, config="steps: 90\n"):
        (tmp_path / name).mkdir()
        return Job(name, {}, tmp_path / name, config)

    return make


def log(job, *steps):
    for step in steps:
        RunFolder(job.folder).append_metrics({"step": step, "loss": 1.0 / 3})


def test_the_last_step_is_the_last_that_was_logged(job):
    run = job("a")
    assert last_step(run.folder) == 0
    log(run, *range(1, 400))
    assert last_step(run.folder) == 399
    with RunFolder(run.folder).metrics.open("a") as file:
        file.write('{"st')  # cut short
    assert last_step(run.folder) == 399


def test_a_line_names_each_run_that_advanced(job, caplog):
    caplog.set_level(logging.INFO, "adance")
    half, new, done, waits = jobs = [job("half"), job("new"), job("done"), job("waits")]
    log(half, 30)
    log(waits, 20)
    with sweep_progress(jobs, every=0.3):
        time.sleep(0.1)
        log(done, 90)
        write_outcome(done.folder, "done", "")
        log(half, 60)
        log(new, 10)
        time.sleep(0.7)
    assert caplog.messages == ["half: step 60/90  new: step 10/90"]


def test_nothing_is_logged_unless_shown(job, caplog):
    caplog.set_level(logging.INFO, "adance")
    run = job("a")
    with sweep_progress([run], shown=False, every=0.05):
        log(run, 10)
        time.sleep(0.2)
    assert caplog.messages == []


def test_a_terminal_shows_a_bar_of_each_running_run(job, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "100")
    run, idle = job("run"), job("idle")
    with sweep_progress([run, idle], every=0.05):
        time.sleep(0.2)
        log(run, 45)
        time.sleep(0.5)
    assert "45/90" in screen.getvalue()
    assert "idle" not in screen.getvalue()
