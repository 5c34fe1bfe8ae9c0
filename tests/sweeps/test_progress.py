import time

import pytest

from adance.sweeps.job import Job, write_ending
from adance.sweeps.progress import last_step, steps_told
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
    log(run, *range(1, 400))  # longer than what is read of it
    assert last_step(run.folder) == 399
    with RunFolder(run.folder).metrics.open("a") as file:
        file.write('{"st')  # cut short
    assert last_step(run.folder) == 399


def test_the_steps_of_runs_that_went_on_are_told_once(job, capsys):
    half, new, done, quiet, waits = jobs = [
        job("half"), job("new"), job("done"), job("quiet", "steps: 90\nquiet: true\n"), job("waits")
    ]  # fmt: skip
    log(half, 30)
    log(waits, 20)
    with steps_told(jobs, every=0.3):
        time.sleep(0.1)
        log(done, 90)
        write_ending(done.folder, "done", "")
        log(half, 60)
        log(new, 10)
        log(quiet, 10)
        time.sleep(0.7)
    assert capsys.readouterr().err == "half: step 60/90  new: step 10/90\n"
