"""One measured number, with everything needed to quote it."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Measurement:
    """A number, and what it is of.

    Attributes:
        group: ``samples``, ``likelihood`` or ``outliers``.
        metric: A short key that does not change with options, such as ``frechet_distance``.
        name: What a reader calls it, such as ``FID`` or ``kernel distance, pixels features``.
        value: The number; ``nan`` is written as null.
        spread: Standard deviation or standard error, as ``note`` or the documentation says.
        better: Which direction is better.
        samples: What was measured, such as ``short-run from noise`` or ``held-out data``.
        split: The split of the data that it was compared with or computed on.
        n: Events measured.
        n_reference: Events that they were compared with.
        extractor: Whose features.
        chain_length: Steps of the chains that drew the samples.
        seed: Seed of everything random in it.
        note: What a reader must know to read it correctly.
    """

    group: str
    metric: str
    name: str
    value: float
    spread: float | None = None
    better: Literal["lower", "higher"] | None = None
    samples: str | None = None
    split: str | None = None
    n: int | None = None
    n_reference: int | None = None
    extractor: str | None = None
    chain_length: int | None = None
    seed: int | None = None
    note: str | None = None

    def as_json(self) -> dict[str, Any]:
        """A dictionary with every field, numbers that JSON cannot hold as null."""
        plain = dataclasses.asdict(self)
        return plain | {key: None for key, x in plain.items() if isinstance(x, float) and not math.isfinite(x)}
