"""The argument parser of all subcommands: it reads numbers, strings and lists, and imports nothing."""

import argparse
import inspect
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin

import docstring_parser
from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace

from adance.commands.given import Given
from adance.commands.parts import Part, choose
from adance.errors import InputError
from adance.registry import registered
from adance.signatures import REQUIRED, Parameter, is_plain_value, members

TRUST_HELP = "allow files and runs to name classes of this module; may be repeated"
WEIGHTS_HELP = "weights to use: the moving average or the last ones; by default the average, if the run has one"
VERBOSITY = {
    "--quiet": "show only warnings and errors, no progress",
    "--verbose": "more messages, and the traceback of an error",
}
"""Options of every command, which apply before it runs."""

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "null"}


class HelpPrinter(argparse.ArgumentParser):
    """A parser that raises an error if its help cannot be written, which argparse would ignore."""

    def print_help(self, file: Any = None) -> None:
        """Print the help."""
        print(self.format_help(), end="", file=file, flush=True)


class Parser(HelpPrinter, ArgumentParser):
    """A parser that raises errors of one line, as :class:`~adance.errors.InputError`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.hints: dict[str, Any] = {}
        options = {"formatter_class": DefaultHelpFormatter, "exit_on_error": False, "allow_abbrev": False, **options}
        super().__init__(*args, **options)

    def option(self, name: str, *, group: Any = None, **options: Any) -> None:
        """Add an option or argument, optionally to a group of the help; its type is kept for error messages."""
        self.hints[name.lstrip("-")] = options.get("type")
        (group or self).add_argument(name, **options)

    def read(self, argv: Sequence[str]) -> Namespace:
        """Parse the arguments.

        Raises:
            InputError: An argument is unknown, is missing or has the wrong type.
        """
        try:
            return self.parse_args(list(argv))
        except argparse.ArgumentError as error:
            raise InputError(self._explained(str(error), argv)) from None

    def _explained(self, message: str, argv: Sequence[str]) -> str:
        """An error message about a value that says what its option accepts."""
        key = message.partition('Parser key "')[2].partition('"')[0]
        hint = self.hints.get(key)
        if hint is None:
            return message
        pairs = [(*token.partition("="), after) for token, after in pairwise([*argv, ""])]
        given = [value if is_joined else after for name, is_joined, value, after in pairs if name == f"--{key}"]
        return f"--{key}: expected {_wanted(hint)}" + "".join(f"; got {text!r}" for text in given[-1:])


def make_parser(command: str, description: str, usage: str | None = None) -> Parser:
    """The parser of a command, with the options of every command: ``--trust``, ``--quiet`` and ``--verbose``."""
    parser = Parser(prog=f"adance {command}", usage=usage, description=description)
    parser.option("--trust", metavar="MODULE", help=TRUST_HELP)
    for name, does in VERBOSITY.items():
        parser.option(name, action="store_true", help=does)
    return parser


def add_part(parser: Parser, part: Part, group: Any = None) -> None:
    """Add the options of an object under a heading for each class; an option without a class goes to ``group``."""
    made_from, key = part.made_from, part.key
    names = [*part.parameter.words, *registered(*part.parameter.kinds)]
    if made_from is None:
        default = part.parameter.default if is_plain_value(part.parameter.default) else None
        hint = part.parameter.plain if part.parameter.words else str | None
        parser.option(
            f"--{key}", group=group, type=hint, default=default, metavar="NAME", help=f"one of {', '.join(names)}"
        )
        return
    summary = summary_of(made_from)
    group = parser.add_argument_group(f"--{key} {made_from.__name__}", f"{summary} Available: {', '.join(names)}.")
    add_settings(parser, group, f"{key}.", part.settings, made_from)
    for inner in part.parts.values():
        add_part(parser, inner, group)


def add_settings(parser: Parser, group: Any, prefix: str, settings: Iterable[Parameter], documented: type) -> None:
    """Add options of plain values to a group of the help, documented by the docstring of ``documented``."""
    said = descriptions(documented)
    for item in settings:
        key = f"{prefix}{item.name}"
        default = None if item.default is REQUIRED else item.default
        checked = {} if item.plain is Any else {"type": item.plain}
        # a file may hold null for what only Python can set, such as a tensor
        shown = argparse.SUPPRESS if item.plain is type(None) else said.get(item.name, "")
        parser.option(f"--{key}", group=group, default=default, help=shown, **checked)


def help_of(part: Part, name: str) -> str:
    """Help on the settings of the class ``name``, or a list of all classes that this option accepts."""
    if name:
        parser = make_parser("train", f"--{part.key} {name} and its settings")
        add_part(parser, choose(part.key, part.parameter, [Given(part.key, name, True)], skipped=part.skipped))
        return parser.format_help().rstrip()
    said = {name: summary_of(found) for name, found in sorted(registered(*part.parameter.kinds).items())}
    width = max(map(len, said))
    listed = "\n".join(f"  {name:<{width}}  {line}" for name, line in said.items())
    return f"values of --{part.key}:\n{listed}\n\n--{part.key}.help NAME shows the settings of a class"


def summary_of(documented: type) -> str:
    """The first line of the docstring of a class."""
    return _without_markup((inspect.getdoc(documented) or "").partition("\n")[0])


def descriptions(documented: type) -> dict[str, str]:
    """The description of each parameter in the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for base in reversed(documented.__mro__):
        try:
            parsed = docstring_parser.parse(inspect.cleandoc(base.__doc__ or ""))
        except docstring_parser.ParseError:
            continue
        found |= {item.arg_name: " ".join((item.description or "").split()) for item in parsed.params}
    return {name: _without_markup(text) for name, text in found.items()}


def _without_markup(text: str) -> str:
    """The text without double backticks, and with only the names of roles such as ``:class:`~adance.MLP```."""
    return re.sub(r":\w+:`(?:~[\w.]*\.)?([\w.]+)`", r"\1", text).replace("``", "")


def _wanted(hint: Any) -> str:
    """The values of a type, in words."""
    if get_origin(hint) is Literal:
        values = [repr(value) for value in get_args(hint)]
        return f"one of {', '.join(values)}" if len(values) > 1 else values[0]
    if len(members(hint)) > 1:
        return " or ".join(map(_wanted, members(hint)))
    if get_args(hint):
        inner = ["…" if part is Ellipsis else _wanted(part) for part in get_args(hint)]
        return f"a list in brackets, [{', '.join(inner)}{', …' if len(inner) == 1 else ''}]"
    return WORDS.get(hint, getattr(hint, "__name__", str(hint)))
