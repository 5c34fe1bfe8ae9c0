"""Settings as YAML text, read and written as plain values alone."""

import json
import re
from typing import Any

import yaml

from adance.errors import InputError

FLOAT, EXPONENT = "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
"""A number such as ``1e-3``, which to YAML 1.1 is a string; so a string ``"1e-3"`` is written in quotes."""

MAX_VALUES = 1_000_000


class _Loader(yaml.SafeLoader):
    pass


class _Dumper(yaml.SafeDumper):
    pass


_Loader.add_implicit_resolver(FLOAT, EXPONENT, list("-+.0123456789"))
_Dumper.add_implicit_resolver(FLOAT, EXPONENT, list("-+.0123456789"))


def read_mapping(text: str, where: str) -> dict[str, Any]:
    """The mapping in ``text``: names, and plain values.

    Args:
        text: YAML.
        where: What to call it in a complaint.

    Raises:
        InputError: It is no YAML, holds anything but plain values, contains itself, or is too large.
    """
    try:
        held = _load(text)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"cannot read {where}: {' '.join(str(error).split())}") from None
    if not (isinstance(held, dict) and all(isinstance(name, str) for name in held)):
        raise InputError(f"cannot read {where}: it must contain settings, each as name: value")
    return held


def read_value(text: str) -> Any:
    """The plain value that ``text`` stands for, itself if it is no YAML; ``1e-3`` is a number."""
    try:
        return _load(text)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return text


def _load(text: str) -> Any:
    value = yaml.load(text, _Loader)  # a safe loader
    if _size(value, {}) > MAX_VALUES:
        raise ValueError(f"with its aliases it has more than {MAX_VALUES:,} values")
    json.dumps(value, default=str)  # refuses what contains itself
    return value


def _size(value: Any, known: dict[int, int]) -> int:
    """The number of values in ``value``, one that has several aliases at each of them."""
    if not isinstance(value, (list, dict)):
        return 1
    if id(value) not in known:
        known[id(value)] = 0  # while it is counted, so that what contains itself has an end
        known[id(value)] = 1 + sum(
            _size(item, known) for item in (value.values() if isinstance(value, dict) else value)
        )
    return known[id(value)]


def names_class(value: Any) -> bool:
    """Whether a plain value holds a ``class_path`` at any depth."""
    if isinstance(value, dict):
        return "class_path" in value or any(map(names_class, value.values()))
    return isinstance(value, list) and any(map(names_class, value))


def as_text(value: Any) -> str:
    """A value as it would be typed for an option."""
    if isinstance(value, str):
        return value
    text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def dump(settings: dict[str, Any], unicode: bool = True) -> str:
    """Settings as the text of a file; without ``unicode``, non-ASCII characters are escaped."""
    text: str = yaml.dump(settings, Dumper=_Dumper, sort_keys=False, allow_unicode=unicode)
    return text
