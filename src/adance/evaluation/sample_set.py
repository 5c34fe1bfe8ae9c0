"""What a metric of samples is given: one set of samples, with all that it may be compared with."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.evaluation.extractor import Extractor, classify, extract
from adance.evaluation.measurement import Measurement
from adance.evaluation.reference import Reference, Split, split_size
from adance.training.run import Run


@dataclass(frozen=True, eq=False)
class SampleSet:
    """One set of samples of a run, or real rows in their place.

    Attributes:
        x: Samples ``(n, *event)`` in the model's units, on the CPU; images are in [−1, 1].
        name: What measurements call them, such as ``short-run from noise``.
        chain_length: Steps of the chains that drew them; ``None`` for real rows.
        run: The run.
        data: The run's data.
        split: The split that samples are compared with.
        seed: Seed of everything random in a metric; the samples were drawn with it too.
        extractor: Whose features are compared; ``None`` if only the events are.
        reference: Features of real data by this extractor.
    """

    x: Tensor
    name: str
    chain_length: int | None
    run: Run
    data: Dataset
    split: Split = "train"
    seed: int = 0
    extractor: Extractor | None = None
    reference: Reference | None = None

    @cached_property
    def real(self) -> Tensor:
        """Real rows ``(m, *event)`` of the split: as many as there are samples, if it has them."""
        rows = torch.randperm(split_size(self.data, self.split), generator=torch.Generator().manual_seed(self.seed))
        return self.data.batch(rows[: len(self.x)], self.split)

    @cached_property
    def features(self) -> Tensor:
        """Features ``(n, d)`` of the samples, float64; there must be an extractor."""
        assert self.extractor is not None
        return extract(self.extractor, self.x)

    @cached_property
    def log_probabilities(self) -> Tensor | None:
        """Log of the class probabilities ``(n, classes)``; ``None`` if the extractor has no classes."""
        return None if self.extractor is None else classify(self.extractor, self.x)

    def generator(self) -> torch.Generator:
        """A new generator for one metric, from the seed; it is past the choice of :attr:`real`."""
        generator = torch.Generator().manual_seed(self.seed)
        torch.randperm(split_size(self.data, self.split), generator=generator)
        return generator

    def measurement(self, metric: str, name: str, value: float, **more: Any) -> Measurement:
        """A measurement of these samples; ``more`` are further fields of it, or others than the set's own."""
        about = {"samples": self.name, "split": self.split, "n": len(self.x), "seed": self.seed}
        return Measurement("samples", metric, name, value, **{**about, "chain_length": self.chain_length, **more})


SampleMetric = Callable[[SampleSet], list[Measurement]]
FeatureMetric = Callable[[SampleSet, Extractor, Reference], list[Measurement]]


def for_vectors(metric: SampleMetric) -> SampleMetric:
    """Make a metric apply to vectors only: of images it measures nothing."""

    @wraps(metric)
    def measure(samples: SampleSet) -> list[Measurement]:
        return metric(samples) if samples.data.kind == "vector" else []

    return measure


def for_features(metric: FeatureMetric) -> SampleMetric:
    """Make a metric of a set, its extractor and its reference apply to sets that have both."""

    @wraps(metric)
    def measure(samples: SampleSet) -> list[Measurement]:
        if samples.extractor is None or samples.reference is None:
            return []
        return metric(samples, samples.extractor, samples.reference)

    return measure
