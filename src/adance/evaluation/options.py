"""What is measured of a run."""

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
        n: Number of samples, and the largest number of rows of any other set.
        features: Feature extractor: ``inception``, ``classifier``, ``pixels``, or a TorchScript file. By default
            ``classifier`` for images with labels, ``pixels`` for images without, and none for vectors.
        features_name: What to call the features of a file.
        split: Split that samples are compared with: ``train`` (the convention) or ``test``.
        samples: Sampling schemes to evaluate, by name prefix, such as ``default``; by default all.
        outliers: Outlier sets: names or paths.
        chains: Annealed chains in each direction.
        max_temperatures: Largest number of temperatures of the annealing.
        force: Measure exp(−E/T) of a model that is not normalizable, too.
        seed: Seed of everything random.

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
