"""The reference has every public name, and each has a docstring."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import adance

PAGES = Path(__file__).parents[1] / "docs" / "reference"
ROOMS = [
    name
    for _, name, is_package in pkgutil.iter_modules(adance.__path__, "adance.")
    if is_package and hasattr(importlib.import_module(name), "__all__")
]


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_has_a_page_and_its_names_have_docstrings(name):
    page = PAGES / f"{name.removeprefix('adance.')}.md"
    assert f".. automodule:: {name}\n" in page.read_text(encoding="utf-8")
    assert re.search(rf"^{page.stem}$", (PAGES / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    room = importlib.import_module(name)
    for public in room.__all__:
        found = getattr(room, public)
        if inspect.isclass(found) or inspect.isfunction(found):
            assert inspect.getdoc(found), f"{name}.{public}"


def test_the_names_of_adance_itself_are_in_the_reference():
    exported = {public for name in ROOMS for public in importlib.import_module(name).__all__}
    other = (PAGES / "other.md").read_text(encoding="utf-8")
    for public in adance.__all__:
        home = getattr(adance, public).__module__
        assert public in exported or (home in other and (home == "adance.errors" or public in other)), public
