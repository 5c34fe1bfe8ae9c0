"""Kills, full disks, damaged files and odd surroundings end in one line, lose nothing, and change no result.

A sample runs with the other tests, and all of it with ``make hardening``.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from child_processes import TINY, end_of, finish, start

import adance
from adance.cli import main
from adance.training.checkpoint import load_tensors, read_state

STEPS = 60
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
COMMAND = [sys.executable, "-m", "adance"]
PACKAGE = str(Path(adance.__file__).parent)


def sampled(cases, *sample):
    """The cases, of which only the ``sample`` runs with the other tests."""
    return [case if case in sample else pytest.param(case, marks=pytest.mark.hardening) for case in cases]


def argv_of(out, steps=STEPS):
    """What starts a run in ``out``, or continues it."""
    if (out / "config.yaml").exists():
        return ["train", "--resume", str(out), "--quiet"]
    return [*TINY, "--steps", str(steps), "--out", str(out)]


def hear_signals():
    """Let a process hear all signals, also those that this one was started to ignore, as in the background."""
    for number in SIGNALS[:3]:
        signal.signal(number, signal.SIG_DFL)


def check_whole(out):
    """Every checkpoint of the run is whole."""
    for folder in (out / "checkpoints").glob("[0-9]*"):
        for name in read_state(folder)["checksums"]:
            if (folder / name).exists():  # older ones keep only their weights
                load_tensors(folder / name)


def check_error(error, lines=1):
    """Standard error is at most this many lines of adance, without a traceback."""
    assert "Traceback" not in error, error
    assert len(error.splitlines()) <= lines, error
    assert all(line.startswith("adance") for line in error.splitlines()), error


@pytest.mark.parametrize("seed", sampled(range(70), 0))
def test_a_run_that_is_killed_while_it_trains_ends_as_one_that_is_not(seed, tmp_path, uninterrupted):
    out, moments, number = tmp_path / "run", random.Random(seed), SIGNALS[(seed + 1) % 4]
    for kill in range(2):
        process = start(argv_of(out), stderr=tmp_path / f"error-{kill}")
        time.sleep(moments.uniform(0, 1))
        with suppress(ProcessLookupError):  # it had ended
            os.kill(process.pid, number)
        process.join(120)
        # 0: it had ended; -number: it had not yet begun, which multiprocessing makes a 1 for SIGINT
        begun = (tmp_path / f"error-{kill}").exists()
        assert process.exitcode in (0, 128 + number, -number) or (process.exitcode == 1 and not begun)
        if process.exitcode == 128 + number:
            check_error((tmp_path / f"error-{kill}").read_text(), lines=2)
        check_whole(out)
    assert finish(argv_of(out)) == 0
    assert end_of(out) == uninterrupted(STEPS)


@pytest.mark.parametrize("seed", sampled(range(30), 1))
def test_a_run_that_is_killed_while_it_starts_ends_as_one_that_is_not(seed, tmp_path, uninterrupted):
    out, moments, number = tmp_path / "run", random.Random(seed), SIGNALS[seed % 4]
    if seed % 3 == 0:  # while it resumes
        assert finish([*TINY, "--steps", STEPS, "--out", out], die_at=16) == -signal.SIGKILL
    process = subprocess.Popen(
        [*COMMAND, *argv_of(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=hear_signals
    )
    time.sleep(moments.uniform(0, 5))
    process.send_signal(number)
    error = process.communicate(timeout=120)[1]
    if "Traceback" in error and PACKAGE not in error:
        assert number == signal.SIGINT  # Python itself had not yet started
    else:
        assert process.returncode in (0, 128 + number, -number)
        check_error(error, lines=2)
    check_whole(out)
    assert finish(argv_of(out)) == 0
    assert end_of(out) == uninterrupted(STEPS)


@pytest.mark.parametrize("place", sampled(range(1, 21), 6))
def test_a_run_on_a_full_disk_says_so_and_continues_when_there_is_room(place, tmp_path, uninterrupted):
    out, error = tmp_path / "run", tmp_path / "error"
    status = finish(argv_of(out, 10), full_at=place, stderr=error)
    assert status in (0, 2)
    text = error.read_text()
    assert (status == 0) == (text == ""), text
    assert status == 0 or re.fullmatch(r"adance train: error: cannot write .*: File too large.*\n", text), text
    saved = sorted((out / "checkpoints").glob("[0-9]*"))
    assert not text or not saved or text.endswith(f"last good checkpoint: {saved[-1]}\n")
    check_whole(out)
    assert not list(out.rglob(".*.part"))
    assert finish(argv_of(out, 10)) == 0
    assert end_of(out) == uninterrupted(10)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished run, and what it samples and ends with when it goes on."""
    folder = tmp_path_factory.mktemp("finished")
    assert main([*TINY, "--steps", "10", "--out", str(folder / "run")]) == 0
    again = shutil.copytree(folder / "run", folder / "again")
    return folder / "run", results_of(again)


def results_of(run):
    """The exit statuses of sampling and of training on, with the samples and the end of the run."""
    sampling = ["sample", str(run), "--n", "2", "--steps", "1", "--out", str(run / "x.npz"), "--quiet"]
    status = main(sampling), main(["train", "--resume", str(run), "--steps", "11", "--quiet", "--device", "cpu"])
    x = np.load(run / "x.npz")["x"] if status[0] == 0 else None
    return status, x, end_of(run) if status[1] == 0 else None


NAMES = sorted(
    ["config.yaml", "data.json", "metrics.jsonl", "samples/00000010.npz", "samples/00000010.png"]
    + [f"checkpoints/00000010/{name}.safetensors" for name in ("average", "energy", "objective", "optimizer", "random")]
    + ["checkpoints/00000010/state.json"]
)
DAMAGE = [f"{name} {how}" for name in NAMES for how in ("cut", "flip 0", "flip 1", "flip 2")]


@pytest.mark.parametrize(
    "damage",
    sampled(DAMAGE, "data.json flip 1", "checkpoints/00000010/objective.safetensors flip 2", "config.yaml cut"),
)
def test_a_damaged_file_is_one_line_or_changes_nothing(damage, finished, tmp_path, capsys):
    whole, (_, x, end) = finished
    run = shutil.copytree(whole, tmp_path / "run")
    name, how = damage.split()[:2]
    content, moments = bytearray((run / name).read_bytes()), random.Random(damage)
    if how == "cut":
        del content[moments.randrange(len(content)) :]
    else:
        content[moments.randrange(len(content))] ^= 1 << moments.randrange(8)
    (run / name).write_bytes(content)
    found_status, found_x, found_end = results_of(run)
    printed = capsys.readouterr().err
    check_error(printed, lines=2)
    assert set(found_status) <= {0, 2}
    assert printed.count("error:") == found_status.count(2)
    if name != "config.yaml":  # which you may edit
        assert found_x is None or np.array_equal(found_x, x)
        assert found_end is None or found_end[:2] == end[:2]
    if name.endswith((".safetensors", ".json")) and how == "flip":
        assert 2 in found_status


def surrounded(tmp_path, *argv, before="", after="", **environment):
    """Run a command in a shell, with settings ``before`` and redirections ``after`` it."""
    words = " ".join(f"'{word}'" for word in [*COMMAND, *argv])
    found = {**os.environ, **environment}
    return subprocess.run(
        ["bash", "-c", f"{before} {words} {after}"],
        cwd=tmp_path,
        env=found,
        capture_output=True,
        encoding="utf-8",
        errors="replace",  # the command may write in another encoding
        timeout=300,
    )


TRAIN = [*TINY, "--steps", "2", "--out", "new"]
# root's permissions, which pass over those of files, are given up
WITHOUT = "-dac_override,-dac_read_search"
AS_OWNER = f"setpriv --inh-caps={WITHOUT} --bounding-set={WITHOUT}" if os.geteuid() == 0 else ""
LOCKED = f"chmod -R a-w run; {AS_OWNER}"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SURROUNDINGS = {
    "full standard output": (["score", "run", "digits"], {"after": "> /dev/full"}, 2),
    "full standard output for help": (["train", "--help"], {"after": "> /dev/full"}, 2),
    "closed standard output": (["score", "run", "digits"], {"after": ">&-"}, 2),
    "full standard error": (["score", "run", "digits", "--verbose"], {"after": "2> /dev/full"}, 0),
    "closed standard error": (["score", "run", "digits"], {"after": "2>&-"}, 0),
    "a reader that has enough": (["score", "run", "digits"], {"before": "set -o pipefail;", "after": "| head -1"}, 0),
    "a deleted folder": (TRAIN, {"before": "mkdir gone; cd gone; rmdir ../gone;"}, 2),
    "no home": (["evaluate", "run", "--n", "20"], {"before": "unset HOME XDG_CACHE_HOME;"}, 0),
    "a home that cannot be written": (TRAIN, {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}, 0),
    "an ASCII terminal": (["evaluate", "run", "--n", "20"], {"PYTHONIOENCODING": "ascii"}, 0),
    "a Latin-1 terminal": (["evaluate", "run", "--n", "20"], {"PYTHONIOENCODING": "latin-1"}, 0),
    "the C locale": (["sample", "run", "--out", "ü/x.npz"], ASCII, 0),
    "a file for a folder": (["sample", "run", "--out", "run/config.yaml/x.png"], {}, 2),
    "training on in a folder that is read-only": (["train", "--resume", "run", "--steps", "11"], {"before": LOCKED}, 2),
    "sampling into a folder that is read-only": (["sample", "run"], {"before": LOCKED}, 2),
    "evaluating in a folder that is read-only": (["evaluate", "run", "--n", "20"], {"before": LOCKED}, 2),
    "a report in a folder that is read-only": (["report", "run"], {"before": LOCKED}, 2),
    "scoring in a folder that is read-only": (["score", "run", "digits"], {"before": LOCKED}, 0),
    "a run in a folder that is read-only": (TRAIN[:-2], {"before": f"chmod a-w .; {AS_OWNER}"}, 2),
    "checkpoints that cannot be read": (
        ["train", "--resume", "run", "--steps", "11"],
        {"before": f"chmod a-r run/checkpoints; {AS_OWNER}"},
        2,
    ),
    "a file size limit": (["sample", "run", "--n", "64"], {"before": "ulimit -f 1;"}, 2),
}


@pytest.mark.parametrize("name", sampled(SURROUNDINGS, "full standard output"))
def test_odd_surroundings(name, finished, tmp_path):
    shutil.copytree(finished[0], tmp_path / "run")
    argv, options, status = SURROUNDINGS[name]
    if "setpriv" in options.get("before", "") and shutil.which("setpriv") is None:
        pytest.skip("root needs setpriv to obey permissions")
    done = surrounded(tmp_path, *argv, **options)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert len(errors) == (status == 2), done.stderr
    if name == "training on in a folder that is read-only":
        assert "last good checkpoint: run/checkpoints/00000010" in done.stderr


@pytest.mark.hardening
def test_a_report_in_the_c_locale_has_the_evaluation(finished, tmp_path):
    run = shutil.copytree(finished[0], tmp_path / "run")
    row = {"name": "Fréchet–distance", "value": 1.5, "group": "samples", "samples": "long"}
    (run / "evaluation.json").write_text(json.dumps({"measurements": [row]}, ensure_ascii=False), encoding="utf-8")
    done = surrounded(tmp_path, "report", "run", **ASCII)
    assert done.returncode == 0, done.stderr
    assert "Fréchet–distance" in (run / "report.html").read_text(encoding="utf-8")


@pytest.mark.hardening
def test_several_runs_at_once_get_folders_of_their_own(tmp_path):
    processes = [subprocess.Popen([*COMMAND, *TINY, "--steps", "2"], cwd=tmp_path) for _ in range(3)]
    assert [process.wait(300) for process in processes] == [0, 0, 0]
    names = sorted(path.name for path in Path(tmp_path, "runs").iterdir())
    assert names == [f"digits-AdaNCE-{number}" for number in (1, 2, 3)]
