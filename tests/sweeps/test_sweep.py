import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from adance.cli import main
from adance.errors import InputError
from adance.sweeps import SweepFolder
from adance.sweeps.worker import _locked
from adance.training.run_folder import RunFolder

SIX = ["--over", "objective.interval=1,5,10", "--over", "seed=0,1"]


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_a_sweep_that_was_killed_goes_on_and_has_every_run_once(sweep, config, tmp_path):
    options = [*SIX, "--jobs", "2", "--steps", "300", "--checkpoint_every", "20"]
    out = tmp_path / "sweep"
    command = [sys.executable, "-m", "adance", "sweep", "--config", str(config), "--out", str(out), *options]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    ended = lambda: {path.parent.name for path in out.glob("*/outcome.json")}  # noqa: E731
    half = lambda: [p for p in out.glob("*/checkpoints/00000040") if p.parents[1].name not in ended()]  # noqa: E731
    wait_for(lambda: (ended() and half()) or process.poll() is not None)
    assert process.poll() is None, "the sweep ended before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {name: (out / name / "outcome.json").stat().st_mtime_ns for name in ended()}
    assert 0 < len(before) < 6

    status, table, _ = sweep(*options)
    assert status == 0
    assert len(ended()) == len(SweepFolder(out).read()["runs"]) == 6
    assert {path.name for path in out.iterdir() if path.is_dir()} == ended()
    assert [row.split("|")[2].strip() for row in table[2:]] == ["2", "2", "2"]
    for name in ended():
        steps = [row["step"] for row in RunFolder(out / name).read_metrics()]
        assert steps == list(range(5, 301, 5))
    assert {name: (out / name / "outcome.json").stat().st_mtime_ns for name in before} == before

    # what was trained in two parts is what is trained in one
    status, _, _ = sweep(*options[2:], "--over", "objective.interval=10", out="whole")
    assert status == 0
    for seed in (0, 1):
        parts = out / f"interval=10,seed={seed}/checkpoints/00000300"
        whole = tmp_path / "whole" / f"seed={seed},interval=10/checkpoints/00000300"
        assert (parts / "energy.safetensors").read_bytes() == (whole / "energy.safetensors").read_bytes()


def test_a_run_that_diverges_or_is_refused_does_not_end_the_others(sweep, tmp_path):
    status, _, err = sweep("--over", "energy_limit=1e-12,1e4", "--over", "batch_size=16,99999", "--objective.pool=0")
    assert status == 3
    assert "3 of 4 runs did not finish well" in err.splitlines()[-1]
    assert "energy_limit=1e-12,batch_size=16 diverged: training diverged at step 1" in err.splitlines()[-1]
    assert "energy_limit=1e4,batch_size=99999 refused" in err.splitlines()[-1]
    statuses = {run["name"]: run["status"] for run in SweepFolder(tmp_path / "sweep").read()["runs"]}
    assert list(statuses.values()) == ["diverged", "refused", "done", "refused"]


def test_a_sweep_can_be_extended_and_keeps_what_it_has(sweep, tmp_path):
    assert sweep("--over", "seed=0")[0] == 0
    before = (tmp_path / "sweep/seed=0/outcome.json").stat().st_mtime_ns
    assert sweep("--over", "seed=1,2")[0] == 0
    assert [point["seed"] for point in SweepFolder(tmp_path / "sweep").points()] == ["0", "1", "2"]
    assert (tmp_path / "sweep/seed=0/outcome.json").stat().st_mtime_ns == before


def test_other_settings_in_the_same_folder_are_refused(sweep):
    assert sweep("--over", "seed=0", "--steps", "5")[0] == 0
    status, _, err = sweep("--over", "seed=1", "--steps", "6")
    assert status == 2
    assert "holds a sweep with steps=5, not 6" in err
    assert "give another --out" in sweep("--over", "lr=0.1", "--steps", "5")[2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--over", "objective.intervall=1,2"], "intervall"),
        (["--over", "objective.rejuvenation=0.1,2"], "rejuvenation must be at most 1, got 2"),
        (["--over", "steps=-1,5"], "steps must be 0 or more"),
        (["--over", "out=a,b"], "a sweep cannot vary this setting"),
        (["--over", "seed=0", "--resume", "x"], "--resume is for adance train"),
        (["--over", "seed=0", "--jobs", "0"], "--jobs must be 1 or more"),
        (["--over", "seed=0", "--backend", "slurm"], "--backend"),
        (["--over", "seed=0", "--evaluate", "FD", "--evaluate_with", "--n 1"], "--evaluate_with '--n 1': --n must be"),
        (["--over", "seed=0", "--evaluate", "FD", "--evaluate_with", "--nope 1"], "unrecognized arguments: --nope 1"),
        ([], "at least one --over"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(sweep, tmp_path, options, said):
    status, _, err = sweep(*options)
    assert status == 2
    assert said in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "sweep").exists()


def test_measures_of_an_evaluation_are_in_the_table(sweep, tmp_path):
    assert sweep("--over", "seed=0,1")[0] == 0
    for seed in (0, 1):
        measures = [{"name": "frechet", "value": 10 + seed, "n": 5}, {"name": "note", "value": "none"}]
        (tmp_path / f"sweep/seed={seed}/evaluation.json").write_text(json.dumps({"measurements": measures}))
    _, table, _ = sweep("--over", "seed=0,1")
    assert "frechet" in table[0]
    assert "10.5 ± 0.71" in table[2]


def test_runs_are_evaluated_once_and_their_measures_chosen(sweep, tmp_path, monkeypatch):
    from adance.commands import evaluate

    asked = []

    def run(argv):
        asked.append(argv[1:])
        print("a table that nobody asked for")
        rows = [{"name": "FD-pixels", "value": 3.0}, {"name": "FID", "value": 4.0}, {"name": "FID", "value": 5.0}]
        (tmp_path / "sweep" / argv[0].rpartition("/")[2] / "evaluation.json").write_text(
            json.dumps({"measurements": rows})
        )

    def is_current(folder, argv):
        return argv in asked and (folder / "evaluation.json").exists()

    for name, stand_in in {"run": run, "read": lambda argv: argv, "is_current": is_current}.items():
        monkeypatch.setattr(evaluate, name, stand_in)
    options = ["--over", "seed=0,1", "--evaluate", "fid", "--evaluate_with", "--n 50 --seed 3"]
    _, table, _ = sweep(*options)
    assert asked == [["--quiet", "--n", "50", "--seed", "3"]] * 2
    assert "FID" in table[0]
    assert "FD-pixels" not in table[0]
    assert "4 ± 0" in table[2]
    status, _, err = sweep(*options)
    assert status == 0
    assert "no metric" not in err
    assert len(asked) == 2
    err = sweep("--over", "seed=0,1", "--evaluate", "speed")[2]
    assert (
        err.splitlines()[-1]
        == "adance: warning: --evaluate speed: no metric has this word in its name. Available: FD-pixels, FID"
    )


def test_ctrl_c_ends_the_sweep_and_not_one_run(config, tmp_path):
    out = tmp_path / "sweep"
    options = ["--over", "seed=0,1,2", "--steps", "100000", "--checkpoint_every", "20"]
    command = [sys.executable, "-m", "adance", "sweep", "--config", str(config), "--out", str(out), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    wait_for(lambda: list(out.glob("*/checkpoints/00000020")) or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert [run["status"] for run in SweepFolder(out).read()["runs"]] == ["interrupted", "not run", "not run"]
    assert not (out / "seed=1").exists()
    assert [outcome.status for outcome in SweepFolder(out).outcomes()] == ["unfinished", "not run", "not run"]


def test_a_run_that_cannot_be_evaluated_is_done_all_the_same(sweep):
    options = ["--over", "seed=0", "--evaluate", "FD", "--evaluate_with", "--features nope"]
    status, table, err = sweep(*options)
    assert status == 2
    assert "seed=0 done: not evaluated" in err.splitlines()[-1]
    assert "loss" in table[0]
    assert sweep("--over", "seed=0", "--evaluate_with", "--n 50")[0] == 2


def test_a_runs_folder_is_no_place_for_a_sweep(sweep, tmp_path):
    sweep("--over", "seed=0")
    status, _, err = sweep("--over", "seed=0,1", out="sweep/seed=0")
    assert status == 2
    assert "is a run folder" in err
    assert not (tmp_path / "sweep/seed=0/sweep.json").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("evaluate {}", "; or evaluate all of them: start the sweep again with --evaluate WORD"),
        ("sample {}", ""),
        ("score {} digits", ""),
        ("train --resume {}", "; or continue all of them: start the sweep again"),
    ],
)
def test_a_sweeps_folder_is_no_run(command, said, short_sweep, capsys):
    out = short_sweep
    assert main(command.format(out).split()) == 2
    assert f"{out} is a sweep folder; give one of its runs, such as {out}/seed=0{said}" in capsys.readouterr().err


def test_runs_of_one_sweep_have_the_same_data(sweep, tmp_path):
    data = tmp_path / "table.csv"
    rows = [f"{i},{i * i % 7},{i % 3}" for i in range(200)]
    data.write_text("\n".join(rows))
    options = ["--data", str(data), "--objective.sampler", "MALA", "--objective.sampler.steps", "2"]
    assert sweep("--over", "seed=0", *options)[0] == 0
    data.write_text("\n".join(rows[:100]))
    status, table, err = sweep("--over", "seed=0,1", *options)
    assert status == 2
    assert "seed=1 refused: the data of" in err.splitlines()[-1]
    assert table
    assert not (tmp_path / "sweep/seed=1/checkpoints").exists()


def test_other_pictures_or_labels_are_other_data(sweep, tmp_path):
    data, generator = tmp_path / "set.npz", np.random.default_rng(0)
    x, y = generator.integers(0, 256, (60, 8, 8), dtype=np.uint8), np.arange(60) % 3
    for other in ({"x": 255 - x, "y": y}, {"x": x, "y": (y + 1) % 3}):
        out = f"sweep{len(list(tmp_path.iterdir()))}"
        np.savez(data, x=x, y=y)
        assert sweep("--over", "seed=0", "--data", str(data), out=out)[0] == 0
        np.savez(data, **other)
        status, _, err = sweep("--over", "seed=0,1", "--data", str(data), out=out)
        assert status == 2
        assert "seed=1 refused: the data of" in err.splitlines()[-1]


def test_only_runs_of_the_sweep_with_the_same_data_count(sweep, tmp_path):
    (tmp_path / "sweep/elsewhere").mkdir(parents=True)
    (tmp_path / "sweep/elsewhere/data.json").write_text("{broken")
    assert sweep("--over", "data=digits", "--over", "seed=0")[0] == 0
    short = [tmp_path / name for name in ("a.npy", "b.npy")]
    for path, value in zip(short, (3, 200), strict=True):
        np.save(path, np.full((60, 8, 8), value, dtype=np.uint8) + np.arange(60, dtype=np.uint8)[:, None, None] % 9)
    assert sweep("--over", f"data=digits,{short[0]}", "--over", "seed=0")[0] == 0
    short[0].write_bytes(short[1].read_bytes())
    status, _, err = sweep("--over", f"data=digits,{short[0]}", "--over", "seed=0,1")
    assert status == 2
    assert "1 of 4 runs did not finish well" in err.splitlines()[-1]


def test_a_refused_value_can_be_left_out_later(sweep, tmp_path):
    assert sweep("--over", "batch_size=16,99999")[0] == 2
    assert sweep("--over", "batch_size=16")[0] == 0
    assert [point["batch_size"] for point in SweepFolder(tmp_path / "sweep").points()] == ["16"]


def test_a_run_has_one_process_and_its_lock_goes_when_that_is_killed(tmp_path, monkeypatch):
    hold = "import sys, time; from pathlib import Path; from adance.sweeps.worker import _locked\n"
    hold += "with _locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        monkeypatch.setattr("adance.sweeps.worker.LOCK_TIMEOUT", 0.3)
        with pytest.raises(InputError, match="is being trained by another process"), _locked(tmp_path):
            pass
        holder.kill()
        holder.wait()
        with _locked(tmp_path):
            pass
