"""Objects that remember how they were made, so that a run folder can make them again."""

import inspect
import sys
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

from adance.errors import InputError
from adance.registry import find_class
from adance.signatures import Parameter, accepts, default_factories, in_words, is_factory, parameters

T = TypeVar("T")


class _ConstructorSignature:
    """The signature that ``inspect.signature`` and ``help`` show for a class: that of ``__init__``, not ``__new__``."""

    def __get__(self, made: object | None, made_from: type) -> inspect.Signature:
        if made is not None:
            raise AttributeError("__signature__")  # an instance is called by its own rules
        signature = inspect.signature(made_from.__init__)  # type: ignore[misc]
        return signature.replace(parameters=list(signature.parameters.values())[1:])


class Configurable:
    """Mix-in: remembers the arguments of its constructor for :func:`describe`."""

    init_args: dict[str, Any]

    __signature__ = _ConstructorSignature()

    checks_types: ClassVar[bool] = False
    """Whether arguments are checked against the type hints of the constructor."""

    def __new__(cls, *args: Any, **kwargs: Any) -> "Configurable":
        """Make the object and note its arguments (copying calls this with none)."""
        made = super().__new__(cls)
        signature = inspect.signature(cls.__init__)
        bound = signature.bind_partial(made, *args, **kwargs)
        bound.apply_defaults()
        named = {name: value for name, value in bound.arguments.items() if name != "self" and not is_factory(value)}
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                named |= named.pop(name)
            elif parameter.kind is parameter.VAR_POSITIONAL:
                del named[name]
        if cls.checks_types:
            check_types(cls, named)
        remember(made, named)
        return made


def check_types(made_from: type, args: Mapping[str, Any]) -> None:
    """Check that each argument of a class has the type of its constructor's hint, or is the default.

    Raises:
        InputError: An argument has another type.
    """
    known = parameters(made_from)
    for name, value in args.items():
        if name in known and value is not known[name].default and not accepts(known[name].hint, value):
            wanted = in_words(known[name].hint)
            raise InputError(f"{made_from.__name__}: {name} must be {wanted}, got {value!r}")


def remember(made: object, init_args: dict[str, Any]) -> None:
    """Note on ``made`` the arguments that it was constructed with."""
    object.__setattr__(made, "init_args", init_args)


def remember_chosen(made: Configurable, **chosen: Any) -> None:
    """Note what was chosen for arguments that were left open; those that its constructor does not take are ignored."""
    remember(made, {name: chosen.get(name, value) for name, value in made.init_args.items()})


def describe(made: object) -> dict[str, Any]:
    """The class path and arguments of ``made``, as plain YAML values; arguments that are objects are described too.

    Raises:
        InputError: The object does not remember its arguments (see :func:`remember`).
    """
    args = getattr(made, "init_args", None)
    if args is None:
        name = class_path(type(made))
        raise InputError(
            f"{name} does not record its constructor arguments (inherit Configurable or call adance.remember)"
        )
    made_defaults = {name: getattr(made, name) for name in default_factories(type(made)) if name not in args}
    plain = {name: as_plain(value) for name, value in {**args, **made_defaults}.items()}
    return {"class_path": class_path(type(made)), "init_args": plain}


def build(config: Mapping[str, Any], *kinds: type[T]) -> T:
    """Make the object that ``config`` describes, which must be of one of these kinds.

    Raises:
        InputError: The class cannot be found, is not allowed (see :mod:`adance.registry`) or is of another kind, or it
            refuses its arguments.
    """
    found = find_class(config.get("class_path"), *kinds)
    known = parameters(found)
    given = config.get("init_args")
    if given is None:
        given = {}
    if not (isinstance(given, Mapping) and all(isinstance(name, str) for name in given)):
        wanted = "init_args must be a mapping of names to values"
        raise InputError(f"cannot construct {class_path(found)}: {wanted}, got {given!r}")
    args = {name: _built(value, known.get(name)) for name, value in given.items()}
    try:
        made = found(**args)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # a constructor can raise anything
        raise InputError(f"cannot construct {class_path(found)}: {error}") from None
    if not isinstance(made, Configurable):
        remember(made, args)
    return made


def class_path(made_from: type) -> str:
    """The shortest import path of the class, which stays valid when files are moved."""
    parts = made_from.__module__.split(".")
    for length in range(1, len(parts) + 1):
        package = ".".join(parts[:length])
        if getattr(sys.modules.get(package), made_from.__name__, None) is made_from:
            return f"{package}.{made_from.__name__}"
    return f"{made_from.__module__}.{made_from.__qualname__}"


def as_plain(value: Any) -> Any:
    """A value as YAML can hold it: tuples as lists, NumPy's numbers as Python's, objects as what they were made from.

    Raises:
        InputError: It is neither plain nor an object that remembers its arguments.
    """
    if isinstance(value, Configurable):
        return describe(value)
    if isinstance(value, (list, tuple)):
        return [as_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: as_plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise InputError(f"an argument of type {type(value).__name__} cannot be written to a config file")


def _built(value: Any, parameter: Parameter | None = None) -> Any:
    """An argument with the objects that it describes made; those of a parameter without a kind can be of any."""
    if isinstance(value, Mapping) and "class_path" in value:
        kinds = parameter.kinds if parameter else ()
        return build(value, *(kinds or (Configurable,)))
    if isinstance(value, list):
        return [_built(item, parameter) for item in value]
    return value
