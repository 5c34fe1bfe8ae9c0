"""Text files are UTF-8 by name, so that what a run holds does not depend on the locale."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
CODE = [path for folder in ("src", "benchmarks", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]
NOT_FILES = ("os", "Image", "archive")


def opens_text(call):
    """Whether a call opens a file as text; a mode with b is bytes."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if isinstance(call.func, ast.Attribute) and name in ("read_text", "write_text"):
        return True
    modes = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    is_file = getattr(getattr(call.func, "value", None), "id", "") not in NOT_FILES or name == "fdopen"
    return name in ("open", "fdopen") and is_file and not any("b" in mode for mode in modes)


def test_every_text_file_is_opened_as_utf_8():
    assert len(CODE) > 200
    for path in CODE:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and opens_text(call):
                where = f"{path}:{call.lineno}: {ast.unparse(call)}"
                assert "encoding" in [word.arg for word in call.keywords], where
