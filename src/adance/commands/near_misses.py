"""What was probably meant, for complaints about a class or a setting of a class that is not there."""

import inspect
import re
from types import ModuleType

from torch import nn

import adance.energies
import adance.objectives
import adance.samplers
from adance.configurable import find_class
from adance.near import did_you_mean
from adance.objectives import Objective
from adance.samplers import Kernel

_CHOICES: dict[str, tuple[ModuleType, type]] = {
    "objective": (adance.objectives, Objective),
    "energy": (adance.energies, nn.Module),
    "sampler": (adance.samplers, Kernel),
    "kernel": (adance.samplers, Kernel),
}


def choices(option: str) -> dict[str, type]:
    """The library's own classes that an option can name."""
    module, kind = _CHOICES[option]
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        name: made
        for name, made in found.items()
        if isinstance(made, type) and issubclass(made, kind) and not inspect.isabstract(made)
    }


def with_suggestion(message: str) -> str:
    """A complaint in readable words, with the name that is nearest to one that is not known."""
    unknown = re.search(r"--(\w+)(?:\.help)?: no class is called '(\w+)'", message)
    if unknown and unknown[1] in _CHOICES:
        return message.replace(unknown[0], unknown[0] + did_you_mean(unknown[2], choices(unknown[1])))
    message = re.sub(
        r"(Option '\w+' is not accepted). Got value: Namespace\(class_path='([\w.]+)'.*",
        r"Problem with given class_path '\2': \1",
        message,
    )
    refused = re.search(r"class_path '([\w.]+)': Option '(\w+)' is not accepted$", message)
    return message + _settings_near(refused[1], refused[2]) if refused else message


def _settings_near(path: str, given: str) -> str:
    try:
        made = find_class({"class_path": path}, object)
        settings = list(inspect.signature(made).parameters)
    except ValueError:  # a class that cannot be found, or has no signature
        return ""
    if issubclass(made, nn.Module) and not issubclass(made, Objective):
        settings = settings[1:]  # the shape of an event, which the data give
    return f"{did_you_mean(given, settings)}; {made.__name__} takes {', '.join(settings)}"
