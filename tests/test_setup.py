"""What ``make setup`` runs, with stand-ins for python, pip and uv that write down how they are called."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON = """#!/bin/sh
case "$*" in
  *"pip config list"*) echo "$PIP_CONFIG" ;;
  *ensurepip*) exit ${NO_ENSUREPIP:-0} ;;
  *version_info*) exit ${TOO_OLD:-0} ;;
  "-m venv .venv")
    echo "python $*" >> "$CALLS"; mkdir -p .venv/bin
    printf '#!/bin/sh\\necho "pip $*" >> "$CALLS"\\n' > .venv/bin/pip; chmod +x .venv/bin/pip ;;
esac
"""
UV = """#!/bin/sh
echo "uv $* [$UV_TORCH_BACKEND]" >> "$CALLS"
mkdir -p .venv
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")


@pytest.fixture
def setup(tmp_path):
    """Run ``make setup`` in a bare checkout; returns the exit status, the calls and what was said."""
    checkout, tools = tmp_path / "checkout", tmp_path / "tools"
    (checkout / "scripts").mkdir(parents=True)
    tools.mkdir()
    for name in ("Makefile", "constraints.txt", "pyproject.toml", "scripts/setup"):
        shutil.copy(ROOT / name, checkout / name)
    for name in ("sh", "grep", "touch", "mkdir", "chmod", "uname", "dirname", "make"):
        (tools / name).symlink_to(shutil.which(name))

    def add(name, text):
        (tools / name).write_text(text, encoding="utf-8")
        (tools / name).chmod(0o755)

    def run(with_uv=False, **variables):
        add("python3", PYTHON)
        if with_uv:
            add("uv", UV)
        calls = tmp_path / "calls"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "MAKE", "MFLAGS"))
        }
        environment = {**kept, "PATH": str(tools), "CALLS": str(calls), **variables}
        done = subprocess.run(
            ["make", "setup"], cwd=checkout, env=environment, capture_output=True, text=True, check=False
        )
        assert (checkout / ".venv" / "ready").exists() == (done.returncode == 0)
        return done.returncode, calls.read_text(encoding="utf-8").splitlines() if calls.exists() else [], done.stderr

    return run


def torch():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("torch=="))


BY_PIP = ["python -m venv .venv", f"pip install --quiet {torch()}"]
BY_PIP += ["pip install --quiet --constraint constraints.txt --editable .[dev,datasets]"]


def test_uv_takes_the_build_of_torch_that_fits_the_machine(setup):
    status, calls, said = setup(with_uv=True)
    assert (status, said) == (0, "")
    assert calls == [
        "uv venv --quiet --seed --python python3 .venv [auto]",
        f"uv pip install --quiet --python .venv {torch()} [auto]",
        "uv pip install --quiet --python .venv --constraint constraints.txt --editable .[dev,datasets] [auto]",
    ]


@pytest.mark.parametrize(("name", "value", "backend"), [("UV_TORCH_BACKEND", "cu130", "cu130"), ("UV_INDEX", "x", "")])
def test_uv_does_what_it_was_told(setup, name, value, backend):
    _, calls, _ = setup(with_uv=True, **{name: value})
    assert all(call.endswith(f"[{backend}]") for call in calls)


@pytest.mark.parametrize(
    "told", [{"PIP_EXTRA_INDEX_URL": "https://a"}, {"PIP_FIND_LINKS": "/b"}, {"PIP_CONFIG": "global.index-url='c'"}]
)
def test_pip_that_was_configured_is_used_even_if_there_is_uv(setup, told):
    assert setup(with_uv=True, **told) == (0, BY_PIP, "")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere torch has no CUDA")
def test_without_uv_pip_says_how_to_get_the_small_build(setup):
    status, calls, said = setup()
    assert (status, calls) == (0, BY_PIP)
    assert "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make setup" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"NO_ENSUREPIP": "1"},
            "python3 cannot make virtual environments; on Debian and Ubuntu: sudo apt install python3-venv",
        ),
        ({"TOO_OLD": "1"}, "python3 is older than 3.10: install a later one, or set PYTHON"),
        ({"PYTHON": "python9"}, "there is no python9: install Python 3.10 or later, or set PYTHON"),
    ],
)
def test_what_is_missing_is_named_in_one_line(setup, variables, message):
    status, calls, said = setup(PIP_FIND_LINKS="/wheels", **variables)
    assert status == 2
    assert calls == []
    first = said.splitlines()[0]  # make adds a line of its own
    assert message in first
