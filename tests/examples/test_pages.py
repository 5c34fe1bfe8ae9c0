"""What the pages show runs: with few steps, short chains and, where they are long, without the commands."""

import re
import shlex
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from adance.cli import main
from adance.evaluation.metrics import SAMPLE_METRICS

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
STEPS = re.compile(r"(\bsteps=|--steps |\brange\(1, )\d+")


@pytest.mark.parametrize(
    ("page", "commands"),
    [
        ("README.md", False),
        ("docs/introduction.md", False),
        ("docs/energy-models.md", False),
        ("docs/images.md", False),
        ("docs/interop.md", False),
        ("docs/objectives.md", False),
        ("docs/plots.md", False),
        ("docs/samplers.md", False),
        ("docs/start/images.md", False),
        ("docs/start/own-energy.md", False),
        ("docs/start/python.md", False),
        ("docs/start/tables.md", False),
        ("docs/sbi.md", False),
        ("docs/your-own.md", True),
    ],
)
def test_what_a_page_shows_runs(page, commands, monkeypatch, tmp_path):
    if page == "docs/samplers.md":
        pytest.importorskip("arviz")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("adance.training.run.sampling_steps", lambda *_: 5)
    monkeypatch.setattr("adance.sbi.simulations.STEPS", 20)
    with torch.random.fork_rng(), patch.dict(SAMPLE_METRICS):  # what a page registers is forgotten
        for kind, text in BLOCK.findall((ROOT / page).read_text()):
            show(kind, STEPS.sub(r"\g<1>20", text), commands, tmp_path)


def show(kind, text, commands, folder):
    """A module, which begins with its name, is written; other Python is run by itself; commands are called."""
    module = re.match(r"# (\w+\.py)\n", text)
    if module:
        (folder / module[1]).write_text(text)
    elif kind == "python":
        exec(compile(text, text, "exec"), {})
    elif commands:
        for line in re.findall(r"^\$ adance (.*)", text, re.MULTILINE):
            assert main(shlex.split(line)) == 0, line
