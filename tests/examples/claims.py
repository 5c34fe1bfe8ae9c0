"""Run a block of a page, and compare the values that its comments claim with those that come out.

Two comments claim a value: one with a tuple of numbers, which is a shape, and one with a number after ``print(...)``,
which is what is printed. Words must be the same, and numbers must agree to the digits shown: pages show fewer digits of
a number that depends on the processor. After "about", every number may differ by a tenth.
"""

import ast
import io
import re
import tokenize
from contextlib import redirect_stdout

SHAPE = re.compile(r"\((?:\d+, ?)*\d+,?\)")
NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")


def comments(source):
    """The comment at the end of each line, by the number of the line."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}


def printed(node):
    """The arguments, if this statement is a call of print."""
    call = node.value if isinstance(node, ast.Expr) else None
    return call.args if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print" else None


def has_value(source):
    """Whether a block claims what it prints."""
    notes = comments(source)
    return any(printed(node) and claims_output(notes.get(node.end_lineno, "")) for node in ast.parse(source).body)


def claims_output(note):
    return bool(NUMBER.search(note)) and not SHAPE.search(note)


def run_block(source, values=True):
    """Run Python source; returns the number of values that were compared.

    Args:
        source: The block.
        values: Compare what is printed. Otherwise only shapes are compared.
    """
    names, notes, compared = {}, comments(source), 0
    for node in ast.parse(source).body:
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile(ast.Module([node], []), source, "exec"), names)
        note = notes.get(node.end_lineno, "") if isinstance(node, ast.Assign | ast.Expr) else ""
        if SHAPE.search(note):
            compared += compare_shape(node, note, names)
        elif printed(node) and values and claims_output(note):
            compared += compare_output(out.getvalue(), note)
    return compared


def compare_shape(node, note, names):
    what = node.targets[0] if isinstance(node, ast.Assign) else (printed(node) or [node.value])[0]
    value = eval(ast.unparse(what), names)
    claimed = ast.literal_eval(SHAPE.search(note)[0])
    assert tuple(value.shape) == claimed, f"{ast.unparse(what)} has shape {tuple(value.shape)}; the page says {claimed}"
    return 1


def compare_output(output, claim):
    """Compare printed text with what a page claims of it; returns the number of numbers compared."""
    message = f"printed:\n{output}\nthe page says:\n{claim}"
    shown, found = NUMBER.findall(claim), NUMBER.findall(output)
    if claim.startswith("about "):
        assert found, message
        assert all(abs(number(x) - number(shown[0])) <= 0.1 * abs(number(shown[0])) for x in found), message
        return len(found)
    assert words(output) == words(claim), message
    for printed_number, claimed in zip(found, shown, strict=True):
        assert abs(number(printed_number) - number(claimed)) <= half_unit(claimed) * (1 + 1e-9), message
    return len(shown)


def words(text):
    return " ".join(NUMBER.sub("0", text).split())


def number(text):
    return float(text.replace(",", "").replace("−", "-"))


def half_unit(text):
    """Half a unit of the last digit shown: 0.05 of 0.2, 500 of 1e3."""
    mantissa, _, exponent = text.replace(",", "").partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
