"""Evaluate a run: every metric of its samples, outlier detection, and likelihood."""

import importlib.metadata
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.data.load import load_for_model
from adance.errors import InputError
from adance.evaluation.class_pictures import save_class_pictures
from adance.evaluation.classifier import Classifier
from adance.evaluation.extractor import Extractor
from adance.evaluation.find_extractor import find_extractor
from adance.evaluation.inception import SPLITS
from adance.evaluation.likelihood import measure_likelihood
from adance.evaluation.measurement import Measurement
from adance.evaluation.metrics import SAMPLE_METRICS
from adance.evaluation.normalizable import temperature_of, why_unnormalized
from adance.evaluation.options import Options
from adance.evaluation.outliers import measure_outliers
from adance.evaluation.reference import Reference, Split, as_events, load_reference, split_size
from adance.evaluation.sample_set import SampleSet
from adance.evaluation.schemes import SamplingScheme, choose_schemes
from adance.training.data_checks import check_same_data, evenly_spaced_rows, fingerprint
from adance.training.run import Run

PICTURES = "evaluation"
Say = Callable[[str], None]


@dataclass(eq=False)
class Evaluation:
    """The result of an evaluation.

    Attributes:
        about: The run, the step and weights, the options, versions.
        measurements: Every number.
        warnings: What was not measured, or must be read with care.
        pictures: Paths of pictures, relative to the run folder.
        seconds: Wall time.
    """

    about: dict[str, Any]
    measurements: list[Measurement] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """What ``evaluation.json`` holds."""
        measurements = [m.as_json() for m in self.measurements]
        found = {"warnings": self.warnings, "pictures": self.pictures, "measurements": measurements}
        return {"format": 2, **self.about, "seconds": round(self.seconds, 1), **found}


def evaluate_run(
    run: Run, options: Options | None = None, *, data: Dataset | None = None, say: Say | None = None
) -> Evaluation:
    """Measure samples, likelihood and outlier detection of a run, which is only read; pictures go to its folder.

    Args:
        run: The run.
        options: What to measure.
        data: The run's data; by default they are loaded as its config says.
        say: Called with a description of each part before it is measured.

    Raises:
        InputError: The data are not those of the run, or something that ``options`` name does not exist or cannot be
            measured, such as outliers of another shape than the run's events.
    """
    options, say, began = options or Options(), say or (lambda what: None), time.monotonic()
    if data is None:
        data = run.reload_data()
        check_same_data(run.folder, fingerprint(data, evenly_spaced_rows(data)))
    if data.event_shape != run.event_shape:
        raise InputError(f"{data.name} has events of shape {data.event_shape}, but the run needs {run.event_shape}")
    result = Evaluation(_about(run, data, options))
    schemes = choose_schemes(run, options.samples)
    outliers = {name: load_for_model(name, run.data) for name in options.outliers}
    features, first = _features_of_data(run, data, options, result, say), None
    for name, x, chain_length in _sample_sets(run, data, schemes, options, say):
        x = _finite(x, name, result)
        samples = SampleSet(x, name, chain_length, run, data, options.split, options.seed, *features)
        first = first or samples
        _measure_samples(samples, result)
    say("outliers")
    result.measurements += measure_outliers(run, data, outliers, n=options.n, seed=options.seed)
    _measure_density(run, data, options, result, say)
    if first is not None:
        names = save_class_pictures(first, run.folder.path / PICTURES)
        result.pictures += [str(Path(PICTURES, name)) for name in names]
    result.seconds = time.monotonic() - began
    return result


def _about(run: Run, data: Dataset, options: Options) -> dict[str, Any]:
    return {
        "run": str(run.folder.path),
        "data": data.name,
        "step": run.step,
        "weights": run.weights,
        "temperature": temperature_of(run),
        "seed": options.seed,
        "options": options.as_json(),
        "device": str(run.device),
        "versions": {name: importlib.metadata.version(name) for name in ("adance", "torch", "torchmetrics")},
    }


def _features_of_data(
    run: Run, data: Dataset, options: Options, result: Evaluation, say: Say
) -> tuple[Extractor, Reference] | tuple[()]:
    """The feature extractor and the features of real data; nothing if none are compared."""
    if data.kind != "image" and options.features is None:
        return ()
    say("features of real data")
    extractor = find_extractor(options.features, data, name=options.features_name, device=str(run.device))
    if isinstance(extractor, Classifier):
        result.about["classifier_accuracy"] = round(extractor.accuracy, 4)
    return extractor, load_reference(extractor, data, options.split)


def _sample_sets(
    run: Run, data: Dataset, schemes: Sequence[SamplingScheme], options: Options, say: Say
) -> Iterator[tuple[str, Tensor, int | None]]:
    """Name, events and chain length of every set: samples of each scheme, then real rows of the other split."""
    for scheme in schemes:
        say(f"samples: {scheme.name}, drawing {options.n} chains of {scheme.steps} steps")
        drawn = scheme.sample(run, options.n, options.seed)
        say(f"samples: {scheme.name}, distances")
        yield from ((name, x, scheme.steps) for name, x in drawn.items())
    other: Split = "test" if options.split == "train" else "train"
    order = torch.randperm(split_size(data, other), generator=torch.Generator().manual_seed(options.seed))
    name = f"{'held-out' if other == 'test' else 'training'} data instead of samples"
    if len(order) >= SPLITS:
        say(name)
    yield name, as_events(data.batch(order[: options.n], other), data.kind), None


def _finite(x: Tensor, name: str, result: Evaluation) -> Tensor:
    finite = x.flatten(1).isfinite().all(1)
    if not finite.all():
        lost = int((~finite).sum())
        result.warnings.append(f"{name}: {lost} of {len(x)} chains became non-finite and are left out")
    return x[finite]


def _measure_samples(samples: SampleSet, result: Evaluation) -> None:
    if samples.chain_length is None and len(samples.x) < SPLITS:
        result.warnings.append(f"{samples.name}: not measured, {len(samples.x)} rows are too few")
        return
    for metric in SAMPLE_METRICS.values():
        found = metric(samples)
        result.measurements += found
        result.warnings += [f"{m.name}, {m.samples}: {m.note}" for m in found if m.note and "n < d" in m.note]


def _measure_density(run: Run, data: Dataset, options: Options, result: Evaluation, say: Say) -> None:
    reasons = why_unnormalized(run)
    if reasons and not options.force:
        result.warnings.append(
            f"log-likelihood not measured: the model is not normalizable ({'; '.join(reasons)}); "
            "--force measures exp(−E/T) anyway"
        )
        return
    found = measure_likelihood(run, data, options, say)
    result.measurements += found
    result.warnings.append(f"log Z: {next(m.note for m in found if m.metric == 'log_z_lower')}")
