"""What the constructor of a class takes, and which of it can be written in a file."""

import dataclasses
import inspect
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from numbers import Real
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from adance.numbers import is_whole
from adance.registry import is_kind

SCALARS = (bool, int, float, str, type(None))
CONTAINERS = (list, tuple, dict, set, Sequence, Mapping)
WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "text", type(None): "None"}
REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """A parameter of a constructor: its name, its type (``Any`` if none is given) and its default."""

    name: str
    hint: Any
    default: Any = REQUIRED

    @property
    def kinds(self) -> tuple[type, ...]:
        """The kinds of object that it takes."""
        return tuple(hint for hint in members(self.hint) if is_kind(hint))

    @property
    def takes_changes(self) -> bool:
        """Whether it takes, instead of an object, a mapping that changes some arguments of the default one."""
        return bool(self.kinds) and any(get_origin(hint) is Mapping for hint in members(self.hint))

    @property
    def words(self) -> tuple[str, ...]:
        """The strings that it takes instead of an object."""
        literals = (hint for hint in members(self.hint) if get_origin(hint) is Literal)
        return tuple(word for hint in literals for word in get_args(hint) if isinstance(word, str))

    @property
    def plain(self) -> Any:
        """The part of its type that a file can hold: ``Any`` if it is not checked, ``None`` if there is none."""
        if not (self.default is REQUIRED or is_plain_value(self.default)):
            return None
        kept = [hint for hint in members(self.hint) if _is_plain(hint)]
        if self.kinds:
            kept = [hint for hint in kept if get_origin(hint) is not Mapping]
        if any(map(_is_loose, kept)):
            return Any
        return reduce(operator.or_, kept) if kept else None


def parameters(made_from: type) -> dict[str, Parameter]:
    """The parameters of a class's constructor; ``**kwargs`` stand for those of the next constructor among its bases."""
    found: dict[str, Parameter] = {}
    for base in made_from.__mro__:
        init = vars(base).get("__init__")
        if not inspect.isfunction(init):
            continue
        listed = list(inspect.signature(init).parameters.values())[1:]
        hints, factories = _hints(init), default_factories(base)
        for item in listed:
            if item.kind not in (item.VAR_KEYWORD, item.VAR_POSITIONAL) and item.name not in found:
                default = factories[item.name]() if is_factory(item.default) else item.default
                found[item.name] = Parameter(item.name, hints.get(item.name, Any), default)
        if not any(item.kind is item.VAR_KEYWORD for item in listed):
            break
    return found


def default_factories(made_from: type) -> dict[str, Callable[[], Any]]:
    """What makes the defaults of a dataclass's fields, by name; nothing for other classes and fields."""
    fields = dataclasses.fields(made_from) if dataclasses.is_dataclass(made_from) else ()
    fields = tuple(item for item in fields if item.init)
    return {item.name: item.default_factory for item in fields if item.default_factory is not dataclasses.MISSING}


def is_factory(default: object) -> bool:
    """Whether the default of a parameter only says that a dataclass makes one for each object."""
    return type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS"


def is_plain_value(value: Any) -> bool:
    """Whether a value consists of numbers, strings, lists and mappings alone."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and is_plain_value(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(is_plain_value, value))
    return isinstance(value, SCALARS)


def accepts(hint: Any, value: object) -> bool:
    """Whether a value is of a type; of types other than numbers, strings, sequences and classes, every value is."""
    return any(_is_of(member, value) for member in members(hint))


def in_words(hint: Any) -> str:
    """The values of a type, in words."""
    if len(members(hint)) > 1:
        return " or ".join(map(in_words, members(hint)))
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) in (list, tuple):
        inner = ["…" if part is Ellipsis else in_words(part) for part in get_args(hint)]
        return f"a {get_origin(hint).__name__} ({', '.join(inner)})"
    if get_origin(hint) in (dict, Mapping):
        return "a mapping of settings"
    return WORDS.get(hint, getattr(hint, "__name__", str(hint)))


def _is_of(hint: Any, value: object) -> bool:
    if hint is int:
        return is_whole(value)
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if get_origin(hint) is Literal:
        return any(isinstance(value, type(word)) and value == word for word in get_args(hint))
    if get_origin(hint) in (dict, Mapping):
        key, item = get_args(hint)
        return isinstance(value, Mapping) and all(accepts(key, k) and accepts(item, v) for k, v in value.items())
    if get_origin(hint) in (list, tuple):
        return isinstance(value, (list, tuple)) and _are_of(get_args(hint), value)
    is_class = isinstance(hint, type) and hint is not Any and not getattr(hint, "_is_protocol", False)
    return isinstance(value, hint) if is_class else True


def _are_of(hints: tuple[Any, ...], values: Sequence[object]) -> bool:
    """Whether values are of the types in the brackets of ``list[…]`` or ``tuple[…]``."""
    if len(hints) == 1 or hints[1:] == (Ellipsis,):
        hints = hints[:1] * len(values)
    return len(hints) == len(values) and all(map(accepts, hints, values))


def _hints(function: types.FunctionType) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except Exception:  # a name in them that is only there for a type checker
        return {}


def members(hint: Any) -> tuple[Any, ...]:
    """The types of a union, or the one type."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(member for part in get_args(hint) for member in members(part))
    return (hint,)


def _is_plain(hint: Any) -> bool:
    if get_origin(hint) is Literal or hint is Any or hint is Ellipsis or hint in SCALARS or hint in CONTAINERS:
        return True
    if get_origin(hint) in (*CONTAINERS, Union, types.UnionType):
        return all(map(_is_plain, get_args(hint)))
    return isinstance(hint, type) and issubclass(hint, (Enum, Path))


def _is_loose(hint: Any) -> bool:
    """Whether some part of the type is unchecked: then a class could be named in it."""
    if get_origin(hint) is Literal:
        return False
    return hint is Any or hint in CONTAINERS or any(map(_is_loose, get_args(hint)))
