"""The distance of a run's samples from held-out data, as one number to follow during training."""

import math

import torch

from adance.data.dataset import Dataset
from adance.energies.conditional import takes_condition
from adance.errors import InputError
from adance.evaluation.find_extractor import find_extractor
from adance.evaluation.frechet import measure_frechet
from adance.evaluation.reference import as_events, load_reference
from adance.evaluation.sample_set import SampleSet
from adance.evaluation.wasserstein import measure_wasserstein
from adance.training.run import Run


class SampleDistance:
    """The distance of fresh samples from the held-out rows: lower is better, but even real data do not reach 0.

    Images: the Fréchet distance in the features that ``adance evaluate`` uses. Vectors: the sliced Wasserstein
    distance. Samples are drawn as by ``adance sample``.

    Args:
        data: The data of the run.
        n: Number of samples.
        seed: Seed of the samples, and of the classifier if one is trained.
        features: ``classifier``, ``pixels``, ``inception`` or a TorchScript file, for images; by default the classifier
            if the data have labels, else pixels.

    Raises:
        InputError: ``n`` is below 2, or there are no such features.
    """

    def __init__(self, data: Dataset, n: int = 1000, seed: int = 0, features: str | None = None) -> None:
        if n < 2:
            raise InputError(f"a distance needs at least 2 samples, got n={n}")
        self.data, self.n, self.seed = data, n, seed
        self.extractor = find_extractor(features, data, seed=seed) if data.kind == "image" else None
        self.reference = None if self.extractor is None else load_reference(self.extractor, data, "test")

    def __call__(self, run: Run) -> float:
        """The distance of samples of ``run``; infinite if a chain became non-finite.

        Samples of a conditional energy are given the labels of held-out rows.
        """
        n, labels = self.n, self.data.test_labels
        if takes_condition(run.energy) and labels is not None:
            run = run.given(labels[torch.arange(n) % len(labels)].to(run.device))
        x = run.sample(n, seed=self.seed).cpu()
        if not x.isfinite().all():
            return math.inf
        x = as_events(x, self.data.kind)
        samples = SampleSet(
            x, "samples", run.sampling_steps, run, self.data, "test", self.seed, self.extractor, self.reference
        )
        return (measure_wasserstein if self.extractor is None else measure_frechet)(samples)[0].value
