"""What the pages show runs, and gives the values that they claim.

``make test`` runs the Python of each page with few steps and short chains, and compares shapes and what does not depend
on the number of steps. ``make docs`` (``-m pages``) also runs the commands, and the blocks that claim other values at
full length.
"""

import io
import re
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch
from claims import compare_output, has_value, run_block
from PIL import Image

from adance.cli import main
from adance.evaluation.metrics import SAMPLE_METRICS

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
STEPS = re.compile(r"(\bsteps=|--steps |\brange\(1, )\d+")
COMMANDS_ARE_QUICK = {"docs/your-own.md"}
NOT_HERE = re.compile(r"hf://|--data mnist|mnist.*--mask|configs/|runs/(mnist|cifar)|textures")  # data from elsewhere
ELSEWHERE = {  # tested by test_hub.py, test_launchers.py and the estimators' test_page.py
    "docs/hub.md",
    "docs/several-processes.md",
    "docs/tables.md",
}
PAGES = [
    page
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/start/*.md"))]
    if BLOCK.search(path.read_text(encoding="utf-8")) and (page := path.relative_to(ROOT).as_posix()) not in ELSEWHERE
]
NEEDS = {"docs/samplers.md": ["arviz"], "docs/trackers.md": ["tensorboard"]}
DIGITS = "train --data digits --steps 20 --out runs/digits"
BEFORE = {  # runs that a page assumes
    "docs/evaluation.md": [DIGITS, "train --data moons --steps 20 --out runs/moons"],
    "docs/report.md": [DIGITS, "sweep --data digits --steps 20 --over seed=0,1 --out runs/by-interval"],
}


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An empty current folder with the files that pages assume, and short chains; what pages register is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("adance.training.run.sampling_steps", lambda *_: 5)
    monkeypatch.setattr("adance.sbi.simulations.STEPS", 20)
    monkeypatch.setattr("adance.sbi.simulations.MEASUREMENTS", 2)
    monkeypatch.setattr("adance.sbi.sampling.EFFECTIVE_SHARE", 0.05)
    monkeypatch.setattr("adance.sbi.sampling.MOVES", 1)
    rng = np.random.default_rng(0)
    for name in ("train", "new", "old"):
        pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"]).to_csv(f"{name}.csv", index=False)
    (tmp_path / "my-pictures").mkdir()
    for index, pixels in enumerate(rng.integers(0, 256, (200, 8, 8, 3)).astype(np.uint8)):
        Image.fromarray(pixels).save(f"my-pictures/{index}.png")
    np.savez("new_images.npz", x=rng.integers(0, 17, (5, 8, 8)).astype(np.uint8))
    before = set(sys.modules)
    with torch.random.fork_rng(), patch.dict(SAMPLE_METRICS):
        yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_runs(page, folder):
    show(page, folder, full=False)


@pytest.mark.pages
@pytest.mark.parametrize("page", PAGES)
def test_a_page_gives_the_values_that_it_claims(page, folder):
    blocks, values = show(page, folder, full=True)
    print(f"{page}: {blocks} blocks run, {values} values compared")


def show(page, folder, full):
    """Run the blocks of a page; returns the numbers of blocks that ran, and of values compared."""
    for extra in NEEDS.get(page, ()):
        pytest.importorskip(extra)
    if full:
        for command in BEFORE.get(page, ()):
            assert main(command.split()) == 0
    ran = values = 0
    for kind, text in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        short = STEPS.sub(r"\g<1>20", text)
        module = re.match(r"# (\w+\.py)\n", text)
        if kind == "console":
            commands, compared = run_commands(text, full) if full or page in COMMANDS_ARE_QUICK else (0, 0)
            ran, values = ran + bool(commands), values + compared
        elif module:
            (folder / module[1]).write_text(short, encoding="utf-8")
            ran += 1
        elif full or not opens_missing_run(text):
            source = text if full and has_value(text) else short
            values += run_block(source, values=source == text)
            ran += 1
    return ran, values


def opens_missing_run(text):
    """Whether a block opens a run that only a command of the page makes."""
    opened = re.search(r'load\("(runs/[^"]+)"', text)
    return opened and "Trainer" not in text and not Path(opened[1]).exists()


def run_commands(block, full):
    """Run the ``adance …`` commands of a block in this process; returns the numbers of commands and of values.

    Training has 20 steps, if the page shows no output that depends on the number.
    """
    entries = [entry.partition("\n") for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    short = not (full and any(output.strip() for _, _, output in entries))
    ran = values = 0
    for line, _, output in entries:
        program, *argv = shlex.split(line, comments=True)
        if program != "adance" or NOT_HERE.search(line):
            continue
        argv, target = (argv[: argv.index(">")], argv[-1]) if ">" in argv else (argv, None)
        if short and argv[0] == "train":
            argv = shlex.split(STEPS.sub("", shlex.join(argv))) + ["--steps", "30" if "--resume" in argv else "20"]
        printed = io.StringIO()
        with redirect_stdout(printed):
            assert main(argv) == 0, line
        if target:
            Path(target).write_text(printed.getvalue(), encoding="utf-8")
        if output.strip() and not short:
            values += compare_output(printed.getvalue(), output)
        ran += 1
    return ran, values
