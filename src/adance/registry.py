"""Which classes a file can name: those that a room exports, and those in modules that the user trusts.

Nothing is imported or called before it is known to be allowed. To register a class, export it from the ``__init__`` of
its room.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from torch import nn

from adance.errors import InputError
from adance.near import did_you_mean

T = TypeVar("T")

ROOMS = ("adance.energies", "adance.objectives", "adance.contrasts", "adance.noises", "adance.samplers")
VARIABLE = "ADANCE_TRUST"

_trusted: set[str] = set()


def trust(*names: str) -> None:
    """Allow files to name classes and functions of these modules, packages or single classes, by dotted name.

    A class of a module that is not trusted is never imported. The environment variable ``ADANCE_TRUST`` holds more
    names, separated by commas.

    Raises:
        InputError: A name is not that of a module.
    """
    for name in names:
        if not _is_dotted(name):
            raise InputError(f"{name!r} is not the name of a module: give one such as mymodule or package.module")
    _trusted.update(names)


def trust_typed(argv: Sequence[str]) -> list[str]:
    """Trust what ``--trust NAME`` says on a command line, and return all other arguments.

    Raises:
        InputError: A name is missing, or is not that of a module.
    """
    rest, tokens = list[str](), iter(argv)
    for token in tokens:
        option, is_joined, name = token.partition("=")
        if option == "--trust":
            trust(name if is_joined else next(tokens, ""))
        else:
            rest.append(token)
    return rest


def trusted() -> tuple[str, ...]:
    """All names that are trusted."""
    variable = {name.strip() for name in os.environ.get(VARIABLE, "").split(",")}
    return tuple(sorted(_trusted | set(filter(_is_dotted, variable))))


@contextmanager
def trust_restored() -> Iterator[None]:
    """Forget what was trusted inside."""
    before = set(_trusted)
    try:
        yield
    finally:
        _trusted.intersection_update(before)


def is_kind(hint: object) -> bool:
    """Whether ``hint`` is a class whose objects a file can describe: an energy, objective, contrast, noise, kernel…"""
    bases = hint.__mro__ if isinstance(hint, type) else ()
    return any(base is nn.Module or _room(base) in ROOMS for base in bases)


def kind_name(kind: type) -> str:
    """What to call a kind in a message."""
    if kind is nn.Module:
        return "energy"
    return kind.__name__.removesuffix("Recipe").lower() or "objective"


def registered(*kinds: type) -> dict[str, type]:
    """The library's own concrete classes of these kinds, by name."""
    return {
        name: found
        for kind in kinds
        for room in _rooms(kind)
        for name, found in _exports(room).items()
        if isinstance(found, type) and _is_concrete(found, kind)
    }


def find_class(path: object, *kinds: type[T], words: Collection[str] = ()) -> type[T]:
    """The class called ``path``, of one of these kinds.

    Args:
        path: The name of a class of the library, alone or after a package of adance; or the dotted path of a class in a
            trusted module.
        kinds: Base classes, one of which it must have; :class:`torch.nn.Module` stands for an energy.
        words: What could have been given instead of a class, for the message.

    Raises:
        InputError: There is no such class, its module is not trusted, or it is of another kind.
    """
    if not isinstance(path, str):
        raise InputError(f"cannot find the class {path!r}: give the name of a class")
    package, _, name = path.rpartition(".")
    if not package or package.partition(".")[0] == "adance":
        found = registered(*kinds).get(name)
        if found is None:
            raise InputError(_unknown(name, kinds, words))
        return found
    found = _import(path, "class")
    if not (isinstance(found, type) and any(_is_concrete(found, kind) for kind in kinds)):
        abstract = " that can be constructed: it is abstract" if inspect.isabstract(found) else ""
        raise InputError(f"{path} is not {_one_of(kinds)}{abstract}")
    return found


def find_function(path: str) -> Callable[..., Any]:
    """The function called ``path``, which a trusted module defines, not only imports.

    Raises:
        InputError: There is no such function, or its module is not trusted.
    """
    found = _import(path, "function")
    if not callable(found) or isinstance(found, type):
        raise InputError(f"{path} is not a function")
    home = getattr(found, "__module__", None)
    if home is not None and not _is_trusted(f"{home}.{path.rpartition('.')[2]}"):
        raise InputError(f"{path} is a function of {home}, which is not trusted")
    return found  # type: ignore[no-any-return]


def _import(path: str, what: str) -> Any:
    module, _, name = path.rpartition(".")
    if not (module and _is_dotted(path)):
        raise InputError(f"cannot find the {what} {path!r}: give its path, such as mymodule.Name")
    if not _is_trusted(path):
        advice = f'add --trust {module} (or adance.trust("{module}")) if you trust its code'
        raise InputError(f"{path} is not a {what} of adance: {advice}")
    try:
        with nullcontext() if _is_installed(module.partition(".")[0]) else _search_here():
            return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, SyntaxError, TypeError, ValueError) as error:
        raise InputError(f"cannot find the {what} {path!r}: {error}") from None


def _is_installed(name: str) -> bool:
    """Whether this module or package is found without the current folder, from which then nothing is imported."""
    return any(finder.find_spec(name, None) is not None for finder in sys.meta_path)


@contextmanager
def _search_here() -> Iterator[None]:
    """Look for modules in the current folder too: last, so that nothing installed is hidden, and only inside."""
    before = list(sys.path)
    sys.path.append(os.getcwd())
    try:
        yield
    finally:
        sys.path[:] = before


def _is_trusted(path: str) -> bool:
    return any(path == name or path.startswith(f"{name}.") for name in trusted())


def _is_dotted(path: str) -> bool:
    return path.isascii() and all(part.isidentifier() for part in path.split("."))


def _is_concrete(found: type, kind: type) -> bool:
    concrete = not (inspect.isabstract(found) or getattr(found, "_is_protocol", False))
    return kind in found.__mro__ and concrete


def _room(kind: type) -> str:
    return ".".join(kind.__module__.split(".")[:2])


def _rooms(kind: type) -> tuple[str, ...]:
    """The rooms whose classes can be of this kind: every module is an ``nn.Module``, but only some are energies."""
    if kind is nn.Module:
        return ("adance.energies",)
    return (_room(kind),) if _room(kind) in ROOMS else ROOMS


def _exports(room: str) -> dict[str, object]:
    module = importlib.import_module(room)
    return {name: getattr(module, name) for name in module.__all__}


def _one_of(kinds: Collection[type]) -> str:
    names = [kind_name(kind) for kind in kinds]
    return " or ".join(f"{'an' if name[0] in 'aeiou' else 'a'} {name}" for name in names)


def _unknown(name: str, kinds: Collection[type], words: Collection[str]) -> str:
    room = next((room for room in ROOMS if name in _exports(room)), None)
    if room is not None:
        return f"{name} of {room} is not {_one_of(kinds)} that can be constructed"
    known = [*words, *registered(*kinds)]
    kind = " or ".join(map(kind_name, kinds))
    one_of = f"give one of {', '.join(known)}, or the path of a class" if known else "give the path of a class"
    return f"no {kind} is called {name!r}{did_you_mean(name, known)}; {one_of}"
