"""Energy-based models, trained by telling data from noise.

Names are imported when first used, so that ``import adance`` is quick.
"""

import importlib

TYPE_CHECKING = False  # typing's own takes most of the time of this import, in which Ctrl-C shows a traceback
if TYPE_CHECKING:
    from typing import Any

    from adance.configurable import remember
    from adance.data import Dataset, load_data
    from adance.energies import MLP, ConvNet, ResNet, Tilted, freeze
    from adance.errors import DivergedError, InputError
    from adance.evaluation import as_distribution
    from adance.objectives import (
        ACE,
        BRM,
        FCE,
        NCE,
        AdaBRM,
        AdaNCE,
        ConditionalNCE,
        Contrastive,
        ContrastiveDivergence,
        DenoisingScoreMatching,
        MaximumLikelihood,
        Objective,
        PersistentCD,
        RankingNCE,
        ScoreMatching,
    )
    from adance.registry import trust
    from adance.samplers import MALA, Langevin, run_chains
    from adance.training import Run, Settings, Trainer, load, load_pretrained

_HOMES = {
    "adance.configurable": ("remember",),
    "adance.data": ("Dataset", "load_data"),
    "adance.energies": ("MLP", "ConvNet", "ResNet", "Tilted", "freeze"),
    "adance.errors": ("DivergedError", "InputError"),
    "adance.evaluation": ("as_distribution",),
    "adance.objectives": (
        "NCE",
        "AdaNCE",
        "Contrastive",
        "ContrastiveDivergence",
        "DenoisingScoreMatching",
        "MaximumLikelihood",
        "Objective",
        "PersistentCD",
        "ScoreMatching",
        "ACE",
        "BRM",
        "FCE",
        "AdaBRM",
        "ConditionalNCE",
        "RankingNCE",
    ),
    "adance.registry": ("trust",),
    "adance.samplers": ("MALA", "Langevin", "run_chains"),
    "adance.training": ("Run", "Settings", "Trainer", "load", "load_pretrained"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ACE",
    "BRM",
    "FCE",
    "MALA",
    "MLP",
    "NCE",
    "AdaBRM",
    "AdaNCE",
    "ConditionalNCE",
    "Contrastive",
    "ContrastiveDivergence",
    "ConvNet",
    "Dataset",
    "DenoisingScoreMatching",
    "DivergedError",
    "InputError",
    "Langevin",
    "MaximumLikelihood",
    "Objective",
    "PersistentCD",
    "RankingNCE",
    "ResNet",
    "Run",
    "ScoreMatching",
    "Settings",
    "Tilted",
    "Trainer",
    "as_distribution",
    "freeze",
    "load",
    "load_data",
    "load_pretrained",
    "remember",
    "run_chains",
    "trust",
]


def __getattr__(name: str) -> "Any":
    """Import ``name`` from its subpackage; ``__version__`` is the version of the installed package."""
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("adance")
    if name not in _HOME:
        raise AttributeError(f"module 'adance' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
