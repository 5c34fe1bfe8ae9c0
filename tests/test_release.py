"""What is released: one version, the files of the wheel and the sdist, and metadata that agree with pyproject.toml."""

import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import adance

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}


def project():
    if sys.version_info < (3, 11):
        pytest.skip("needs tomllib")
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read_yaml(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_there_is_one_version():
    found = project()["version"]
    assert version("adance") == adance.__version__ == found
    assert read_yaml("CITATION.cff")["version"] == found
    assert read_yaml("conda/recipe.yaml")["context"]["version"] == found
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\]", changelog, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert f"released as {found}" in changelog or found in headings
    kinds = re.findall(r"^### (.+)$", changelog, re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_conda_recipe_needs_what_the_package_needs():
    wanted = {}
    for item in project()["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(?:\[.*\])?(>=.+)", item).groups()
        wanted[CONDA_NAMES.get(name, name)] = bound
    needs = dict(item.split(" ", 1) for item in read_yaml("conda/recipe.yaml")["requirements"]["run"])
    assert needs.pop("python") == project()["requires-python"]
    assert needs.pop("typeshed-client")  # of the extra jsonargparse[signatures], for which conda has no package
    assert needs == wanted


def test_workflows_test_every_python_that_is_allowed():
    tests = read_yaml(".github/workflows/tests.yml")["jobs"]["latest-versions"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in tests["os"]} == {"ubuntu", "macos", "windows"}
    lowest = project()["requires-python"].removeprefix(">=")
    assert tests["python"][0] == lowest
    numbers = [int(name.split(".")[1]) for name in tests["python"]]
    assert numbers == list(range(numbers[0], 15))
    assert read_yaml(".github/workflows/release.yml")["jobs"]["publish"]["permissions"] == {"id-token": "write"}


def test_the_paper_cites_what_its_bibliography_has():
    paper = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    head, text = paper.split("---\n")[1:3]
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= yaml.safe_load(head).keys()
    entries = set(
        re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert set(re.findall(r"(?<!\w)@(\w+)", text)) == entries
    for name in re.findall(r"!\[.*?\]\((.+?)\)", text, re.DOTALL):
        assert (ROOT / "paper" / name).exists()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True, capture_output=True
    )
    return folder


def test_the_wheel_has_the_package_with_its_data_and_nothing_else(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        metadata = wheel.read(next(name for name in wheel.namelist() if name.endswith("METADATA"))).decode()
    source = ROOT / "src"
    kept = {path for path in (source / "adance").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert names == {path.relative_to(source).as_posix() for path in kept}
    assert {Path(name).suffix for name in names} <= {".py", ".typed", ".yaml", ".json", ".jsonl", ".safetensors"} | {
        ".html",
        ".css",
        ".js",
    }
    assert "adance/report/templates/player.js" in names
    assert "License-File: LICENSE" in metadata
    assert "Requires-Python: >=3.10" in metadata


def test_the_sdist_has_what_a_packager_needs_and_no_results(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in (
        "pyproject.toml",
        "LICENSE",
        "README.md",
        "CITATION.cff",
        "src/adance/py.typed",
        "tests/conftest.py",
    ):
        assert needed in names, needed
    unwanted = ("benchmarks/results/", ".ci/", "runs/", "dist/", ".venv", "docs/_build/", "docs/gallery/")
    assert [name for name in names if name.startswith(unwanted) or "__pycache__" in name] == []
