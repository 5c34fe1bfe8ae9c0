"""``adance doctor``: what it prints, and what it refuses."""

import json

import pytest

from adance.training.run_folder import RunFolder


def test_a_good_run_gets_one_line(adance):
    answer = adance("doctor", "pretrained:digits")
    assert answer.status == 0
    assert answer.out == (
        "nothing found in 80 lines of metrics up to step 8000; checked: whether chains reach the data, too large a "
        "ratio temperature, too small a ratio temperature\n"
    )


def test_a_run_that_has_just_begun_is_too_young(trained_run, adance):
    answer = adance("doctor", "run")
    assert (answer.status, answer.error) == (0, "")
    early = "most checks need 3 lines from step 100 on\n"
    assert answer.out == f"nothing found in 2 lines of metrics up to step 6; checked: gradients; {early}"
    (trained_run / "metrics.jsonl").unlink()
    assert adance("doctor", "run").out == f"nothing found in 0 lines of metrics up to step 0; checked: nothing; {early}"


def test_findings_are_printed_one_a_line_and_nothing_is_written(trained_run, adance, bytes_under):
    rows = RunFolder(trained_run).read_metrics()
    sick = {"ratio_std": 1e4, "energy_held_out": 99.0, "energy_train": 0.0, "energy_std": 1.0}
    lines = [json.dumps({**rows[-1], "step": step, **sick}) for step in (100, 200, 300)]
    (trained_run / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    before = bytes_under()
    answer = adance("doctor", "run")
    assert answer.status == 0
    assert [line.partition(":")[0] for line in answer.out.splitlines()] == [
        "ratio temperature too small",
        "overfitted energy",
    ]
    assert bytes_under() == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lr: 0.001", "lr: fast"),
        ("warmup: 0", "warmup: [1]"),
        ("interval: 10", "interval: often"),
        ("ratio_temperature: auto", "ratio_temperature: {a: 1}"),
        ("steps: 2", "steps: two"),
        ("step_size: 1.0", "step_size: 1"),
        ("center: true", "center: 7"),
    ],
)
def test_settings_of_another_type_do_not_matter(old, new, trained_run, adance):
    path = trained_run / "config.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    sick = {"auc": 1.0, "ratio_std": 1e4, "energy_train": 1e3, "energy_data": 0.0, "energy_std": 1.0, "weight_rms": 1e9}
    rows = [{**RunFolder(trained_run).read_metrics()[-1], "step": step, **sick} for step in (100, 200, 300)]
    rows[1]["energy_data"] = 2e3
    (trained_run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    answer = adance("doctor", "run")
    assert answer.status == 0
    assert answer.out.startswith("learning rate too small: ")
    assert "chains never reach the data: " in answer.out


def test_what_is_no_run_is_refused(adance, tmp_path):
    (tmp_path / "empty").mkdir()
    for path in ("nowhere", "empty"):
        answer = adance("doctor", path)
        assert answer.status == 2
        assert answer.error == f"adance doctor: error: {path} is not a run folder: it has no config.yaml\n"
    assert adance("doctor", "pretrained:nothing").status == 2
    assert adance("doctor").status == 2


def test_numbers_that_no_float_holds_count_as_missing(trained_run, adance):
    sound = {"energy_data": 1.0, "energy_held_out": 1.0, "ratio_std": 1.0, "auc": 0.5, "live_weights": 1.0}
    rows = [{"step": step, "energy_train": 10**400, "energy_std": float("nan"), **sound} for step in (100, 200, 300)]
    (trained_run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    answer = adance("doctor", "run")
    assert (answer.status, answer.error) == (0, "")
    assert answer.out == "nothing found in 3 lines of metrics up to step 300; checked: gradients\n"
