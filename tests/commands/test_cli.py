import importlib
import io
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version

import pytest

from adance import objectives
from adance.cli import main
from adance.commands import choices

NO_TORCH = "import sys; {}; assert not {{'torch', 'numpy', 'jsonargparse', 'matplotlib'}} & set(sys.modules)"


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_importing_the_package_imports_nothing_heavy():
    done = python(NO_TORCH.format("import adance"))
    assert done.returncode == 0, done.stderr


def test_help_imports_nothing_heavy():
    done = python(NO_TORCH.format("from adance.cli import main; assert main(['--help']) == 0"))
    assert done.returncode == 0, done.stderr


def test_help_answers_at_once():
    def seconds():
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-m", "adance", "--help"], capture_output=True, text=True)
        assert done.returncode == 0
        assert done.stdout.startswith("usage: adance COMMAND")
        return time.monotonic() - began

    assert min(seconds() for _ in range(3)) < 1


def test_the_module_run_by_python_imports_nothing_from_the_current_folder(tmp_path):
    for name in ("argparse", "jsonargparse", "logging", "torch"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')")
    argv = [sys.executable, "-m", "adance", "train", "--print_config"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert not (tmp_path / "imported").exists()
    assert done.stdout.startswith("data: digits\n"), done.stderr


def test_help_names_every_command_and_status(adance):
    for flag in ("--help", "-h"):
        answer = adance(flag)
        assert (answer.status, answer.error) == (0, "")
        for word in ("train", "sample", "score", "0 done, 2 bad input, 3 training diverged, 130 interrupted"):
            assert word in answer.out


def test_without_a_command_the_help_is_shown_and_the_status_is_bad_input(capsys):
    assert main([]) == 2
    assert capsys.readouterr().out.startswith("usage: adance COMMAND")


def test_version(adance):
    assert adance("--version") == (0, f"adance {version('adance')}\n", "")


def test_an_unknown_command(adance):
    answer = adance("trian", "--data", "digits")
    assert answer == (
        2,
        "",
        "adance: error: unknown command 'trian'. "
        "Available: train, doctor, sample, evaluate, score, outliers, ratio, sweep, report\n",
    )


@pytest.mark.parametrize("command", ["train", "sample", "score"])
def test_help_of_a_command(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert f"usage: adance {command}" in out
    assert "known subclasses" not in out


def test_help_of_no_objective_in_particular_names_them_all(adance):
    status, out, _ = adance("train", "--objective.help")
    assert status == 0
    lines = dict(line.split(maxsplit=1) for line in out.splitlines() if line.startswith("  "))
    assert list(lines) == sorted(set(objectives.__all__) - {"LogRatio", "LossOutput", "Objective", "Recipe", "Setting"})
    assert lines["NCE"].startswith("Noise-contrastive estimation")
    assert "(did you mean NCE?)" in adance("train", "--objective.help", "NCEE").error


def test_the_public_names_are_there():
    import adance

    assert [name for name in adance.__all__ if not hasattr(adance, name)] == []
    assert dir(adance) == sorted(adance.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        adance.Nothing  # noqa: B018


def test_a_closed_pipe_is_no_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = """
import sys, types
from adance.cli import main

def run(args):
    raise BrokenPipeError

sys.modules["adance.commands.score"] = types.SimpleNamespace(run=run)
sys.exit(main(["score", "a", "b"]))
"""
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_is_one_line_and_status_130(adance, monkeypatch):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr("adance.commands.score.run", interrupted)
    assert adance("score", "a", "b") == (130, "", "adance score: error: interrupted\n")


@pytest.mark.parametrize(
    ("number", "status", "by"),
    [(signal.SIGINT, 130, ""), (signal.SIGTERM, 143, " by SIGTERM"), (signal.SIGHUP, 129, " by SIGHUP")],
)
def test_a_signal_counts_whatever_a_library_makes_of_it(number, status, by, adance, monkeypatch):
    def swallowed(args):
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            raise RecursionError("maximum recursion depth exceeded") from None

    monkeypatch.setattr("adance.commands.score.run", swallowed)
    # a shell starts processes in the background with Ctrl-C ignored, which a command respects
    own = signal.signal(number, signal.default_int_handler)
    try:
        assert adance("score", "a", "b") == (status, "", f"adance score: error: interrupted{by}\n")
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, own)


def test_a_fault_of_the_program_keeps_its_traceback(monkeypatch):
    def broken(args):
        raise RecursionError

    monkeypatch.setattr("adance.commands.score.run", broken)
    with pytest.raises(RecursionError):
        main(["score", "a", "b"])


def test_a_closed_standard_output_is_an_error_before_any_work(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout", None)
    assert main(["score", "a", "b"]) == 2
    assert capsys.readouterr().err == "adance: error: standard output is closed: redirect it, as in > /dev/null\n"


def test_settings_are_printed_in_ascii_where_text_is_not_utf_8(monkeypatch, tmp_path):
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    assert main(["train", "--data", "dät.npz", "--print_config"]) == 0
    (tmp_path / "config.yaml").write_bytes(raw.getvalue())
    assert choices.read(["--config", str(tmp_path / "config.yaml")]).args.data == "dät.npz"


def test_an_interrupt_before_there_is_a_checkpoint_does_not_say_how_to_go_on(tiny, monkeypatch):
    def interrupted(trainer):
        raise KeyboardInterrupt

    monkeypatch.setattr("adance.training.Trainer.fit", interrupted)
    assert tiny("run") == (130, "", "adance train: error: interrupted\n")


def test_energies_have_their_bare_names_though_another_package_has_them_too(adance):
    importlib.import_module("zuko.nn")
    options = ["--energy.hidden", "[4]", "--steps", "1", "--batch_size", "8", "--objective.buffer", "64", "--quiet"]
    options += ["--objective.sampler", "Langevin", "--objective.sampler.steps", "1", "--objective.interval", "1"]
    assert adance("train", "--energy", "MLP", *options, "--out", "a").status == 0
    assert adance("train", "--energy=MLP", *options, "--out", "b").status == 0
