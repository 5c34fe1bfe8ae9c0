"""Runs that cannot be resumed or read: status 2, one line, and nothing in the folder changes."""

import json

import pytest

from adance.training.checkpoint import load_tensors, save_tensors


def without_checksums(path):
    """Rewrite a JSON file as earlier versions wrote it."""
    held = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in held.items() if name not in ("crc32", "checksums")}))


def test_resuming(adance, trained_run, tmp_path, bytes_under):
    (tmp_path / "empty").mkdir()
    before = bytes_under()
    for argv, message in [
        (("empty",), "empty is not a run folder: it has no config.yaml"),
        (("nope",), "nope is not a run folder"),
        (
            ("run", "--lr", "0.1"),
            "--lr cannot change when resuming. Allowed: --device, --patience, --profile, --quiet, --resume",
        ),
        (("run", "--energy.hidden=[4]", "--data", "moons"), "--data, --energy.hidden cannot change"),
        (("run", "--out", "other"), "--out cannot change"),
        (("run", "--config", "run/config.yaml"), "--config cannot change"),
        (("run", "--steps", "5"), "run already has 6 steps, more than steps=5"),
        (("run", "--steps", "-5"), "steps must be 0 or more"),
    ]:
        answer = adance("train", "--resume", *argv)
        assert answer.status == 2, argv
        assert message in answer.error
        assert bytes_under() == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "- 1\n", "cannot read"),
        ("steps: 6", "stairs: 6", "must contain energy, objective and steps"),
        ("steps: 6", "steps: six", "steps must be a whole number, got six"),
        ("batch_size: 16", "batch_size: 0", "batch_size must be more than 0"),
        (
            "class_path: adance.MLP",
            "class_path: os.mkdir",
            'os.mkdir is not a class of adance: add --trust os (or adance.trust("os")) if',
        ),
        ("class_path: adance.MLP", "class_path: no.Net", "no.Net is not a class of adance: add --trust no (or"),
        ("class_path: adance.MLP", "path: x", "cannot find the class"),
        ("class_path: adance.AdaNCE", "class_path: os.mkdir", "os.mkdir is not a class of adance"),
        ("    hidden:", "    hiden: 3\n    hidden:", "cannot construct adance.MLP"),
        ("data: digits", "data: nope", "data source 'nope'"),
        ("data: digits", "data: null", "cannot load the data, which were in memory"),
    ],
)
def test_a_broken_config(old, new, message, adance, trained_run, tmp_path, bytes_under):
    path = tmp_path / "run" / "config.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else new + text)
    before = bytes_under()
    answer = adance("train", "--resume", "run", "--quiet")
    assert answer.status == 2
    assert message in answer.error
    assert bytes_under() == before


@pytest.mark.parametrize("name", ["energy", "objective", "optimizer", "random", "average"])
def test_a_truncated_checkpoint(name, adance, trained_run, tmp_path):
    path = tmp_path / "run" / "checkpoints" / "00000006" / f"{name}.safetensors"
    path.write_bytes(path.read_bytes()[:-7])
    answer = adance("train", "--resume", "run", "--quiet")
    assert answer.status == 2
    assert f"cannot read run/checkpoints/00000006/{name}.safetensors" in answer.error
    if name in ("average", "objective"):
        assert adance("sample", "run", "--out", "x.npz").status == 2


def test_weights_that_do_not_fit(adance, trained_run, tmp_path):
    path = tmp_path / "run" / "config.yaml"
    path.write_text(path.read_text().replace("    - 8\n", "    - 9\n"))
    for argv in (("train", "--resume", "run", "--quiet"), ("sample", "run"), ("score", "run", "digits")):
        answer = adance(*argv)
        assert answer.status == 2
        assert "does not fit the MLP" in answer.error
        assert "size mismatch" in answer.error


def test_an_optimizers_state_that_does_not_fit(adance, trained_run, tmp_path):
    path = tmp_path / "run" / "checkpoints" / "00000006" / "optimizer.safetensors"
    whole = load_tensors(path)
    without_checksums(path.parent / "state.json")
    cut = {name: value[..., :1] if value.ndim else value for name, value in whole.items()}
    more = {**whole, "99.exp_avg": whole["0.exp_avg"]}
    for broken in (cut, more, {"weights": whole["0.exp_avg"]}, {"0.exp_avg": whole["0.exp_avg"]}):
        save_tensors(broken, path)
        answer = adance("train", "--resume", "run", "--steps", "8", "--quiet")
        assert answer.status == 2
        assert "optimizer.safetensors does not fit" in answer.error
