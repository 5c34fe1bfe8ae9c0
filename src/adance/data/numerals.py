"""Numbers written as text: which cells are numbers, which only look like one, and which are whole."""

import re

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_LIKE_A_NUMBER = re.compile(r"[+-]?[$€£]?[.,]?\d[\d_.,'’\s]*(e[+-]?\d+)?\s?[%$€£]?|[+-]?0x[\da-f]+", re.IGNORECASE)
_MAX_DIGITS = 40


def number(text: str) -> float | None:
    """The number that ``text`` represents, with a decimal point if it has any, or ``None``.

    Unlike ``float``, this accepts neither ``1_000`` nor digits of other scripts.
    """
    return float(text) if _NUMBER.fullmatch(text) else None


def whole_number(text: str) -> int | None:
    """The whole number that ``text`` represents, such as ``07``, ``7.0`` or ``7e0``, or ``None``; 64 bits at most."""
    value = number(text)
    if value is None or not abs(value) <= 2**63 or value % 1 or len(text) > _MAX_DIGITS:
        return None
    digits = text.partition(".")[0]
    exact = int(value) if "e" in text.lower() or not digits.strip("+-") else int(digits)
    return exact if -(2**63) <= exact < 2**63 else None


def has_decimal_comma(text: str) -> bool:
    """Whether ``text`` is a number with a decimal comma."""
    return _DECIMAL_COMMA.fullmatch(text) is not None


def looks_like_a_number(text: str) -> bool:
    """Whether ``text`` is a number, or is meant as one: with thousands separators, a unit, or in another script."""
    return number(text) is not None or _LIKE_A_NUMBER.fullmatch(text) is not None
