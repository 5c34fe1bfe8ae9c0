"""Settings as YAML text, read and written as plain values alone."""

import json
import re
from typing import Any

import yaml

from adance.errors import InputError

FLOAT, EXPONENT = "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
"""A number such as ``1e-3``, which to YAML 1.1 is a string; so a string ``"1e-3"`` is written in quotes."""


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
        InputError: It is no YAML, holds anything but plain values, or contains itself.
    """
    try:
        held = yaml.load(text, _Loader)  # a safe loader
        json.dumps(held, default=str)  # refuses what contains itself
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"cannot read {where}: {' '.join(str(error).split())}") from None
    if not (isinstance(held, dict) and all(isinstance(name, str) for name in held)):
        raise InputError(f"cannot read {where}: it must contain settings, each as name: value")
    return held


def read_value(text: str) -> Any:
    """The plain value that ``text`` stands for, itself if it is no YAML; ``1e-3`` is a number."""
    try:
        value = yaml.load(text, _Loader)  # a safe loader
        json.dumps(value, default=str)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return text
    return value


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
