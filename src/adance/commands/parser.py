"""The argument parser that all subcommands use."""

import argparse
import re
from collections.abc import Sequence

from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace

import adance.energies
from adance.errors import InputError


class _Formatter(DefaultHelpFormatter):
    """Help without the list of every class that torch knows."""

    def _expand_help(self, action: argparse.Action) -> str:
        return re.sub(r", known subclasses: [^)]*", "", super()._expand_help(action))


def with_full_energy_name(argv: Sequence[str]) -> list[str]:
    """Arguments with ``--energy NAME`` of a class of ours by its full path: other packages have an ``MLP`` too."""
    full = list(argv)
    for place, token in enumerate(full):
        option, is_joined, name = token.partition("=")
        if is_joined and option == "--energy" and name in adance.energies.__all__:
            full[place] = f"--energy=adance.energies.{name}"
        elif token in adance.energies.__all__ and place > 0 and full[place - 1] == "--energy":
            full[place] = f"adance.energies.{token}"
    return full


def make_parser(command: str, description: str, usage: str | None = None) -> ArgumentParser:
    """A parser whose complaints are raised as ``argparse.ArgumentError``."""
    return ArgumentParser(
        prog=f"adance {command}",
        usage=usage,
        description=description,
        exit_on_error=False,
        allow_abbrev=False,
        formatter_class=_Formatter,
    )


def readable(message: str) -> str:
    """A parser's complaint as one line in the user's words."""
    message = " ".join(message.split())
    for pattern, words in (
        (r'Parser key "([\w.]+)":', r"--\1:"),
        (r"<class '(\w+)'>", r"\1"),
        (r"Type collections\.abc\.Callable\[.*?\] expects a function or a callable class: ", ""),
        (
            r"Does not validate against any of the Union subtypes Subtypes: .*? Errors: - (.*?) - Expected a None.*",
            r"\1",
        ),
        (r"Expected a typing\.Literal\[(.*?)\]", r"expected one of \1"),
        (r"Expected a dot import path string: (\w+)", r"no class is called '\1'; see --help, or give its path"),
        (
            r"Does not validate against any of the Union subtypes Subtypes: .*? Errors: - (expected one of .*?)"
            r" - no class is called '(\w+)'.*",
            r"\1, or a class; got '\2'",
        ),
        (r"Expected a int - expected one of ('\w+')", r"expected a whole number or \1"),
        (
            r"--sampler: Expected an instantiatable class, but adance\.[\w.]+ is abstract",
            "--sampler is left to the library: name one before you set its parts; that of images is Langevin with "
            "steps=30, step_size=1, noise_std=0.005, that of vectors MALA with steps=50",
        ),
        (
            r"--(\w+): Expected an instantiatable class, but adance\.[\w.]+ is abstract",
            r"the \1 is left to the library: name one before you set its parts",
        ),
        (
            r"Does not validate against any of the Union subtypes Subtypes: .*? Errors: - (expected one of .*?)"
            r" - Expected a bool Given value type: \w+ Given value: ?(.*)",
            r"\1; got '\2'",
        ),
        (r"Expected a int\b", "expected a whole number"),
    ):
        message = re.sub(pattern, words, message)
    return message.removesuffix(".")


def instantiate(parser: ArgumentParser, args: Namespace) -> Namespace:
    """The settings with their objects made.

    Raises:
        InputError: A class refuses its arguments.
    """
    try:
        made: Namespace = parser.instantiate(args)
    except InputError:
        raise
    except ValueError as error:  # jsonargparse wraps what a class that is one of several types says
        raise InputError(readable(str(error))) from None
    return made
