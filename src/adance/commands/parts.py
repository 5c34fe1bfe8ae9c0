"""Options whose values are objects: the chosen class and its settings.

Classes are looked up here, in the registry; the parser of the command then sees only numbers, strings and lists.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jsonargparse import Namespace

from adance.commands.given import Given, inside, option_of
from adance.configurable import as_plain, class_path
from adance.errors import InputError
from adance.near import did_you_mean
from adance.registry import find_class, trust
from adance.signatures import REQUIRED, Parameter, members, parameters
from adance.yaml_text import as_text, names_class, read_value


@dataclass
class Part:
    """The chosen class of an object, and its settings.

    Attributes:
        key: The option, as in ``objective.sampler``.
        parameter: The parameter that takes the object.
        made_from: The class; ``None`` if the library chooses, or a word was given instead.
        skipped: Number of leading parameters that no option sets, such as the event shape of an energy.
        word: A word given instead of a class, such as ``gaussian``.
        given: Settings of the class by name, as text that the parser checks.
        unchecked: Values that the parser does not check: without a type hint, without a class, or text from a file.
        parts: Objects among the settings, by the names of their parameters.
    """

    key: str
    parameter: Parameter
    made_from: type | None
    skipped: int = 0
    word: str | None = None
    given: dict[str, str] = field(default_factory=dict)
    unchecked: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, "Part"] = field(default_factory=dict)

    @property
    def settings(self) -> list[Parameter]:
        """Parameters of the class that are numbers, strings or lists."""
        return [item for item in _parameters(self.made_from, self.skipped) if not item.kinds and item.plain is not None]

    def find(self, key: str) -> "Part":
        """The part called ``key``: this one or one inside it.

        Raises:
            InputError: No part has this name.
        """
        if key == self.key:
            return self
        for part in self.parts.values():
            if f"{key}.".startswith(f"{part.key}."):
                return part.find(key)
        raise InputError(
            f"--{key}: does not take a class. Options of {self.key} that do: {', '.join(self.parts) or 'none'}"
        )

    def tokens(self) -> Iterator[str]:
        """The settings that were given, as arguments for the parser."""
        if self.word is not None:
            yield f"--{self.key}={self.word}"
        for name, text in self.given.items():
            yield f"--{self.key}.{name}={text}"
        for part in self.parts.values():
            yield from part.tokens()

    def make(self, args: Namespace, *first: Any) -> Any:
        """Make the object; without a class, return the changed settings or the word that was given instead.

        Args:
            args: All parsed settings.
            first: Values of the leading parameters, for those that are skipped.

        Raises:
            InputError: An argument is missing, or the class refuses one.
        """
        if self.made_from is None:
            return self._instead(args)
        for item in self.settings:
            if item.default is REQUIRED and item.name not in {**self.given, **self.unchecked}:
                raise InputError(f"--{self.key}.{item.name} is required by {self.made_from.__name__}")
        values = {item.name: self._value(item, args) for item in self.settings}
        values |= {name: part.make(args) for name, part in self.parts.items()}
        try:
            return self.made_from(*first[: self.skipped], **values)
        except (InputError, MemoryError, RuntimeError):
            raise
        except Exception as error:  # a constructor can raise anything
            raise InputError(f"--{self.key}: cannot construct {class_path(self.made_from)}: {error}") from None

    def describe(self, args: Namespace) -> Any:
        """The part as plain values for a file."""
        if self.made_from is None:
            return as_plain(self._instead(args))
        found = {item.name: as_plain(self._value(item, args)) for item in self.settings}
        found |= {name: part.describe(args) for name, part in self.parts.items()}
        order = [item.name for item in _parameters(self.made_from, self.skipped) if item.name in found]
        return {"class_path": class_path(self.made_from), "init_args": {name: found[name] for name in order}}

    def _value(self, item: Parameter, args: Namespace) -> Any:
        return self.unchecked.get(item.name, args[f"{self.key}.{item.name}"])

    def _instead(self, args: Namespace) -> Any:
        """The value of the option if no class was named."""
        if self.word is not None:
            return args[self.key]
        if self.parameter.default is REQUIRED and not self.unchecked:
            raise InputError(f"--{self.key}: give the name of a class")
        return self.unchecked or self.parameter.default


def choose(
    key: str, parameter: Parameter, given: Sequence[Given], default: type | None = None, skipped: int = 0
) -> Part:
    """Find the classes of the option ``key`` and of its parts.

    If several classes are given, the last counts; earlier settings are kept if it has them too.

    Raises:
        InputError: A class is unknown, not allowed or of the wrong kind, or lacks a setting that was given.
    """
    part, kept = Part(key, parameter, default, skipped), list[Given]()
    for setting in inside(key, given):
        if setting.key:
            kept.append(setting)
            continue
        chosen, part.word = _class_or_word(key, parameter, setting)
        if chosen is not part.made_from:
            known = {item.name for item in _parameters(chosen, skipped)}
            kept = [earlier for earlier in kept if option_of(earlier.key) in known]
        part.made_from = chosen
    if {item.name for item in _parameters(part.made_from, 0)[:skipped]} & {option_of(setting.key) for setting in kept}:
        part.skipped = 0  # the class does not take the event shape first, or it is given
    if part.made_from is None:
        part.unchecked = _changes(key, parameter, kept)
    else:
        _sort_settings(part, kept)
    return part


def _class_or_word(key: str, parameter: Parameter, setting: Given) -> tuple[type | None, str | None]:
    value = setting.value
    is_null = value in (None, "null") and type(None) in members(parameter.hint)
    if is_null or value in parameter.words:
        return None, as_text(value)
    is_trusted = setting.typed and setting.trusted
    if is_trusted and isinstance(value, str) and "." in value and not value.startswith("adance."):
        trust(value)
    try:
        return find_class(value, *parameter.kinds, words=parameter.words), None
    except InputError as error:
        raise InputError(f"--{key}: {error}") from None


def _changes(key: str, parameter: Parameter, kept: Sequence[Given]) -> dict[str, Any]:
    if kept and not parameter.takes_changes:
        raise InputError(f"--{key}.{kept[0].key}: choose a class first, with --{key} NAME")
    return {setting.key: _unchecked(f"{key}.{setting.key}", setting) for setting in kept}


def _unchecked(key: str, setting: Given) -> Any:
    """The value of a setting of unknown type, which must not name a class, since classes are not looked up here."""
    value = read_value(setting.value) if setting.typed and isinstance(setting.value, str) else setting.value
    if names_class(value):
        raise InputError(f"--{key}: cannot be a class, since its type hint does not name a kind of class")
    return value


def _sort_settings(part: Part, kept: Sequence[Given]) -> None:
    """Sort the given settings into plain ones and parts."""
    assert part.made_from is not None
    known = {item.name: item for item in _parameters(part.made_from, part.skipped)}
    for setting in kept:
        item = known.get(option_of(setting.key))
        if item is None or not (item.kinds or (item.plain is not None and item.name == setting.key)):
            names = [name for name, item in known.items() if item.kinds or item.plain is not None]
            near = did_you_mean(setting.key, names)
            takes = f"{part.made_from.__name__} takes {', '.join(names) or 'no settings'}"
            raise InputError(f"--{part.key}: {setting.key!r} is not accepted{near}; {takes}")
        if not item.kinds:
            part.given.pop(item.name, None)
            part.unchecked.pop(item.name, None)
            is_text = isinstance(setting.value, str) and not setting.typed and str in members(item.hint)
            if item.plain is Any or is_text:
                part.unchecked[item.name] = _unchecked(f"{part.key}.{item.name}", setting)
            else:
                part.given[item.name] = as_text(setting.value)
    for name, item in known.items():
        if item.kinds:
            inner = [
                setting._replace(key=f"{part.key}.{setting.key}") for setting in kept if option_of(setting.key) == name
            ]
            part.parts[name] = choose(f"{part.key}.{name}", item, inner)


def _parameters(made_from: type | None, skipped: int) -> list[Parameter]:
    return [] if made_from is None else list(parameters(made_from).values())[skipped:]
