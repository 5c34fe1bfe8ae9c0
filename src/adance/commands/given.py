"""Settings from the command line and from files, in order."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from adance.errors import InputError
from adance.near import did_you_mean
from adance.yaml_text import as_text, read_mapping


class Given(NamedTuple):
    """One setting of an object, or of one of its parts.

    Attributes:
        key: Its full name, as in ``objective.sampler.steps``.
        value: Text if it was typed, a YAML value if it is from a file.
        typed: Whether it was typed, now or for an earlier sweep in the same folder.
        trusted: Whether a class that was typed is trusted.
    """

    key: str
    value: Any
    typed: bool
    trusted: bool = True


class Arguments(NamedTuple):
    """The settings of objects, in order, and all other arguments."""

    given: list[Given]
    rest: list[str]


def split_arguments(
    argv: Sequence[str], options: Collection[str], settings: Collection[str] | None = None
) -> Arguments:
    """Separate the settings of objects from other arguments, replacing each ``--config`` file by its content.

    Args:
        argv: The arguments.
        options: Names of the options whose values are objects.
        settings: Names of all other settings that a file can hold; ``None`` if there is no ``--config``.

    Raises:
        InputError: A file cannot be read, or contains an unknown setting.
    """
    found, tokens = Arguments([], []), iter(argv)
    for token in tokens:
        name, is_joined, value = token.partition("=")
        key = name.removeprefix("--")
        is_file = settings is not None and key == "config"
        if not token.startswith("--") or not (is_file or option_of(key) in options):
            found.rest.append(token)
            continue
        if not is_joined:
            value = next(tokens, "--")
            if value.startswith("--"):
                raise InputError(f"{name}: the value is missing, as in {name}=VALUE")
        if is_file:
            given, rest = from_file(value, options, settings or ())
            found.given.extend(given)
            found.rest.extend(rest)
        else:
            found.given.append(Given(key, value, True))
    return found


class Asked(NamedTuple):
    """A request for the help of an object.

    Attributes:
        key: The option.
        name: The class; empty for a list of all classes.
        rest: All other arguments.
    """

    key: str
    name: str
    rest: list[str]


def asked_for_help(argv: Sequence[str], options: Collection[str]) -> Asked | None:
    """The request that ``--objective.help``, ``--objective.help NAME`` or the same for another option makes, if any."""
    for place, token in enumerate(argv):
        name, _, value = token.partition("=")
        key = name.removeprefix("--").removesuffix(".help")
        if name == f"--{key}.help" and option_of(key) in options:
            after = [] if value else [following for following in argv[place + 1 : place + 2] if following[:2] != "--"]
            return Asked(key, value or "".join(after), [*argv[:place], *argv[place + 1 + len(after) :]])
    return None


def from_file(path: str, options: Collection[str], settings: Collection[str]) -> Arguments:
    """The settings in a file.

    Raises:
        InputError: The file cannot be read, or contains an unknown setting.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"--config: cannot read {path}: {error.strerror}") from None
    return from_mapping(read_mapping(text, path), options, settings, path)


def from_mapping(held: Mapping[str, Any], options: Collection[str], settings: Collection[str], where: str) -> Arguments:
    """The settings in a mapping.

    Raises:
        InputError: A setting is unknown.
    """
    found = Arguments([], [])
    for key, value in held.items():
        if option_of(key) in options:
            found.given.append(Given(key, value, False))
        elif key in settings:
            found.rest.append(f"--{key}={as_text(value)}")
        else:
            raise InputError(f"{where}: {key!r} is not a setting{did_you_mean(key, [*options, *settings])}")
    return found


def inside(key: str, given: Iterable[Given]) -> Iterator[Given]:
    """The settings of the object called ``key``, by the names inside it; its class has the name ``""``.

    A mapping is split up: ``{class_path: …, init_args: {…}}``, or only the settings.

    Raises:
        InputError: A mapping is malformed.
    """
    for setting in given:
        if setting.key == key:
            yield from _opened("", setting, key)
        elif setting.key.startswith(f"{key}."):
            yield from _opened(setting.key.removeprefix(f"{key}."), setting, key)


def _opened(name: str, setting: Given, key: str) -> Iterator[Given]:
    name, value = name.removeprefix("init_args."), setting.value
    if name == "class_path":
        yield setting._replace(key="", value=str(value))
        return
    if name in ("", "init_args"):
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = read_mapping(value, f"--{key}")
        if name == "init_args" and value is None and not setting.typed:
            raise InputError(
                f"--{key}: this config cannot rebuild its {key.rpartition('.')[2]}: init_args is null, because the "
                "arguments were not recorded; write {} to use the defaults"
            )
        if name == "init_args" and not isinstance(value, (Mapping, type(None))):
            raise InputError(f"--{key}: init_args must be a mapping of names to values, got {value!r}")
        if isinstance(value, Mapping):
            for inner in sorted(map(str, value), key=lambda inner: inner != "class_path"):
                yield from _opened(inner, setting._replace(value=value[inner]), key)
            return
    if name != "init_args":
        yield setting._replace(key=name, value=value)


def option_of(key: str) -> str:
    """The option that a setting belongs to: ``objective`` of ``objective.sampler.steps``."""
    return key.partition(".")[0]
