"""All settings of a run: what ``adance train`` and ``adance sweep`` read from the command line and from files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from jsonargparse import Namespace
from torch import nn

from adance.commands.given import Arguments, Given, asked_for_help, from_mapping, inside, option_of, split_arguments
from adance.commands.parser import Parser, add_part, add_settings, help_of, make_parser
from adance.commands.parts import Part, choose
from adance.configurable import as_plain, remember
from adance.energies import MLP
from adance.errors import InputError
from adance.objectives import AdaNCE, Recipe
from adance.objectives.default_energy import default_energy
from adance.signatures import Parameter, parameters
from adance.training import Settings
from adance.training.config import DATA_KEYS
from adance.yaml_text import dump, read_mapping

Energy = Literal["auto"]
AUTO: Energy = "auto"
"""The energy that the library chooses for the data and the objective."""

OBJECTS = ("energy", "objective")
"""Options that choose a class and its settings."""

DATA_HELP = "a name, a .npz, .npy or .csv file, or a folder of images"
NOT_IN_FILES = ("config", "print_config", "trust", "quiet", "verbose")

SWITCHES = {
    "flip": "mirror each image left to right with probability ½",
    "dequantize": "add uniform noise of one quantization level to images",
    "allow_batch_norm": "allow batch normalization in the energy",
    "profile": "print at the end how the time was spent",
}
"""Options that need no value."""


@dataclass(frozen=True)
class Choices:
    """All settings of a run: plain values and objects."""

    args: Namespace
    energy: Part
    objective: Part

    def make_objective(self) -> Recipe:
        """Make the objective.

        Raises:
            InputError: The objective refuses its arguments.
        """
        made: Recipe = self.objective.make(self.args)
        return made

    def make_energy(self, event_shape: tuple[int, ...], objective: Recipe) -> nn.Module:
        """Make the energy for events of this shape; if no class was chosen, the default for the objective.

        Raises:
            InputError: The energy refuses its arguments or the shape.
        """
        try:
            made = self.energy.make(self.args, event_shape)
        except RuntimeError as error:
            raise InputError(f"--energy: cannot be constructed for events of shape {event_shape}: {error}") from None
        energy: nn.Module = default_energy(event_shape, objective) if made == AUTO else made
        if not hasattr(energy, "init_args"):
            shape = {name: list(event_shape) for name in list(parameters(type(energy)))[:1]}
            remember(energy, shape | self.energy.describe(self.args)["init_args"])
        return energy

    @property
    def settings(self) -> Settings:
        """The settings of the training loop.

        Raises:
            InputError: A setting is out of its range (see :class:`~adance.training.Settings`).
        """
        return Settings(**{name: self.args[name] for name in parameters(Settings)})

    def as_yaml(self, unicode: bool = True) -> str:
        """All settings, as the text of a file that ``--config`` reads; see :func:`~adance.yaml_text.dump`."""
        plain = {name: as_plain(self.args[name]) for name in plain_settings()}
        data = {name: plain.pop(name) for name in DATA_KEYS}
        parts = {part.key: part.describe(self.args) for part in (self.energy, self.objective)}
        return dump({**data, **parts, **plain}, unicode)


def read(argv: Sequence[str], values: Mapping[str, str] | None = None, *, trusted: bool = True) -> Choices:
    """Read all settings, checked as far as possible without data.

    Args:
        argv: The command line.
        values: More settings by their full names, which override the others.
        trusted: Whether classes in ``values`` are trusted, because the user typed them now.

    Raises:
        InputError: A class or a setting is unknown, not allowed, or has the wrong type.
    """
    found = split_arguments(argv, OBJECTS, plain_settings())
    for key, value in (values or {}).items():
        if option_of(key) in OBJECTS:
            found.given.append(Given(key, value, typed=True, trusted=trusted))
        else:
            found.rest.append(f"--{key}={value}")
    return _chosen(found)


def read_text(text: str) -> Choices:
    """Read the settings in a text, as written by :meth:`Choices.as_yaml`.

    Raises:
        InputError: A class or a setting is unknown, not allowed, or has the wrong type.
    """
    return _chosen(from_mapping(read_mapping(text, "the settings"), OBJECTS, plain_settings(), "the settings"))


def help_asked(argv: Sequence[str]) -> str | None:
    """The text for ``--objective.help [NAME]`` or the same for another option; ``None`` if none was asked for."""
    asked = asked_for_help(argv, OBJECTS)
    if asked is None:
        return None
    given = split_arguments(asked.rest, OBJECTS, plain_settings()).given
    return help_of(_part(option_of(asked.key), given).find(asked.key), asked.name)


@cache
def plain_settings() -> tuple[str, ...]:
    """Names of the plain settings that a file can hold."""
    return tuple(name for name in _plain_parser().get_defaults().as_dict() if name not in NOT_IN_FILES)


def _part(option: str, given: Sequence[Given]) -> Part:
    if option == "energy":
        return _energy(given)
    return choose(option, Parameter(option, Recipe), given, AdaNCE)


def _energy(given: Sequence[Given]) -> Part:
    """The energy: ``auto``, unless a class or a setting follows; an MLP if there are only settings."""
    kept: list[Given] = []
    for setting in inside("energy", given):
        full = f"energy.{setting.key}".rstrip(".")
        kept = [] if (full, setting.value) == ("energy", AUTO) else [*kept, setting._replace(key=full)]
    return choose("energy", Parameter("energy", nn.Module | Energy, AUTO), kept, MLP if kept else None, skipped=1)


def _chosen(found: Arguments) -> Choices:
    parser, parts = _plain_parser(), [_part(option, found.given) for option in OBJECTS]
    for part in parts:
        add_part(parser, part)
    args = parser.read([*found.rest, *(token for part in parts for token in part.tokens())])
    return Choices(args, *parts)


def _plain_parser() -> Parser:
    """The parser of everything but the objects."""
    parser = make_parser("train", "Train an energy-based model into a run folder.")
    parser.option("--config", metavar="FILE", help="a file of these settings, in YAML; may be repeated")
    parser.option("--print_config", action="store_true", help="print all settings, as a file for --config")
    parser.option("--data", type=str | None, default="digits", help=DATA_HELP)
    parser.option("--held_out", type=float, default=0.1, help="share of rows held out if the data have no split")
    parser.option("--image_size", type=int | None, default=None, help="side length to which images are resized")
    parser.option("--data_seed", type=int, default=0, help="seed of generated data and of the split")
    loop = [item for item in parameters(Settings).values() if item.name not in SWITCHES]
    add_settings(parser, parser, "", loop, Settings)
    parser.option("--out", type=str | None, default=None, help="run folder; default: runs/<data>-<objective>-<n>")
    parser.option("--resume", type=str | None, default=None, help="resume the run in this folder")
    parser.option("--device", type=str | None, default=None, help="cpu or cuda; default: cuda if available")
    parser.option("--trackers", type=list[str], default=[], help="experiment trackers: [tensorboard], [wandb], …")
    for name, does in SWITCHES.items():
        parser.option(f"--{name}", type=bool, nargs="?", const=True, default=False, help=does)
    return parser
