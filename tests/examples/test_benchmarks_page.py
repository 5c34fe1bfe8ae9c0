"""The page of benchmarks lists every script that another page cites, and what it lists exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
TOOLS = {
    "make_pretrained",
    "mnist14",
    "digits",
    "rbm_learner",
}  # parts of other benchmarks, which measure nothing alone


def test_every_cited_script_is_listed():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "start").glob("*.md")]
    cited = {name for page in pages for name in re.findall(r"benchmarks/(\w+)\.py", page.read_text(encoding="utf-8"))}
    listed = set(re.findall(r"`(\w+)\.py", PAGE))
    assert len(listed) > 10
    assert cited - TOOLS - {"NAME"} <= listed
    for name in listed:
        assert (ROOT / "benchmarks" / f"{name}.py").is_file(), name


def test_every_file_of_results_exists():
    rows = re.findall(r"\| ([^|\n]+) \|$", PAGE, re.MULTILINE)[1:]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(named) > 5
    for name in named:
        assert (ROOT / "benchmarks" / "results" / name).exists(), name
