"""What is measured of a run: the options of ``adance evaluate``, whose help is the docstring."""

from dataclasses import asdict, dataclass
from typing import Any

from adance.errors import InputError
from adance.evaluation.reference import Split

SMALLEST = {"n": 10, "chains": 2, "max_temperatures": 2, "seed": 0}
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Options:
    """What is measured.

    Attributes:
        n: number of samples, and maximum number of rows in any other set
        features: feature extractor: ``inception``, ``classifier``, ``pixels``, or a TorchScript file; by default
            ``classifier`` for images with labels, ``pixels`` for images without, and none for vectors
        features_name: name of the features, if ``features`` is a file
        split: split that samples are compared with
        samples: sampling schemes to evaluate, by name prefix, such as ``default``; by default all
        outliers: outlier sets: names or paths
        chains: annealed chains in each direction
        max_temperatures: maximum number of annealing temperatures
        force: measure the likelihood even if the model is not normalizable
        seed: seed of everything random

    Raises:
        InputError: ``n`` is below 10, ``chains`` or ``max_temperatures`` below 2, or ``seed`` negative; one of them
            does not fit 32 bits; or ``split`` is neither ``train`` nor ``test``.
    """

    n: int = 1000
    features: str | None = None
    features_name: str | None = None
    split: Split = "train"
    samples: tuple[str, ...] = ()
    outliers: tuple[str, ...] = ()
    chains: int = 500
    max_temperatures: int = 3000
    force: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name, smallest in SMALLEST.items():
            if not smallest <= getattr(self, name) <= LARGEST:
                raise InputError(f"--{name} must be at least {smallest} and less than 2**31, got {getattr(self, name)}")
        if self.split not in ("train", "test"):
            raise InputError(f"--split must be train or test, got {self.split!r}")

    def as_json(self) -> dict[str, Any]:
        """The fields as JSON returns them: tuples as lists."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
