"""What the command line sets for its process, and that it undoes it."""

import logging
import resource
import sys
import warnings
from types import SimpleNamespace

import pytest
import torch

from adance.cli import main
from adance.commands import process
from adance.commands.process import log_level, log_to_stderr, reuse_freed_memory

SIZE = 64 << 20
PAGES = SIZE // resource.getpagesize()
LOG = logging.getLogger("adance")
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what glibc keeps")


def pages_of_a_second_use() -> int:
    """Pages that the system maps when memory as large as one just freed is filled."""
    torch.ones(SIZE, dtype=torch.uint8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(SIZE, dtype=torch.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident() -> int:
    with open("/proc/self/statm", encoding="utf-8") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


@pytest.fixture
def allocator_calls(monkeypatch):
    calls = []
    libc = SimpleNamespace(mallopt=lambda *of: calls.append(of), malloc_trim=lambda rim: calls.append(rim))
    monkeypatch.setattr(process, "_glibc", lambda: libc)
    return calls


@ON_LINUX
def test_freed_memory_is_used_again_inside():
    # a small allocation may take the rim of the freed block, so that the next use needs another: not every time
    with reuse_freed_memory():
        assert min(pages_of_a_second_use() for _ in range(5)) < PAGES // 10


@ON_LINUX
def test_it_is_given_back_at_the_end():
    with reuse_freed_memory():
        torch.ones(4 * SIZE, dtype=torch.uint8)
        held = resident()
    assert resident() < held - 3 * SIZE


def test_only_the_command_line_touches_the_allocator(allocator_calls, tiny):
    from adance import NCE, Settings, Trainer, load

    assert tiny("run").status == 0
    assert allocator_calls[:2] == [(-1, -1), (-4, 0)]
    assert allocator_calls[-1] == 0
    allocator_calls.clear()
    run = load("run")
    run.sample(2, steps=1)
    Trainer(run.energy.requires_grad_(), NCE(), run.reload_data(), Settings(steps=1), "again").fit()
    assert not allocator_calls


def test_everything_is_undone_at_the_end(capsys):
    before = LOG.level, list(LOG.handlers), warnings.showwarning
    assert main(["nothing"]) == 2
    assert (LOG.level, LOG.handlers, warnings.showwarning) == before
    LOG.info("not shown")
    assert capsys.readouterr().err == "adance: error: unknown command 'nothing'. Available: " + ", ".join(
        ["train", "doctor", "sample", "evaluate", "score", "outliers", "ratio", "sweep", "report\n"]
    )


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        ([], ["progress", "adance: warning: careful now"]),
        (["--quiet"], ["adance: warning: careful now"]),
        (["--verbose"], ["a detail", "progress", "adance: warning: careful now", "f.py:7: FutureWarning: soon"]),
    ],
)
def test_quiet_and_verbose_choose_what_is_shown(argv, shown, capsys):
    with log_to_stderr(log_level(["train", *argv])):
        LOG.debug("a detail")
        LOG.info("progress")
        warnings.showwarning(UserWarning("careful\n now"), UserWarning, "f.py", 6)
        warnings.showwarning(FutureWarning("soon"), FutureWarning, "f.py", 7)
    assert capsys.readouterr().err.splitlines() == shown


@pytest.mark.parametrize("command", ["train", "doctor", "sample", "evaluate", "score", "sweep", "report"])
def test_every_command_takes_quiet_and_verbose(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    out = capsys.readouterr().out
    assert "--quiet" in out
    assert "--verbose" in out


def test_verbose_shows_where_an_error_was_raised(adance, capsys):
    assert main(["score", "nope", "digits", "--verbose"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("adance score: error: nope is not a run folder")
    assert any("Traceback" in line for line in lines)
