"""All measures of one run."""

import importlib.metadata
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.errors import InputError
from adance.evaluation.class_pictures import save_class_pictures
from adance.evaluation.classifier import Classifier
from adance.evaluation.extractor import Extractor
from adance.evaluation.find_extractor import find_extractor
from adance.evaluation.image_measures import SPLITS, measure_features
from adance.evaluation.likelihood import CHAINS, measure_likelihood
from adance.evaluation.measurement import Measurement
from adance.evaluation.normalizable import why_unnormalized
from adance.evaluation.outliers import load_outliers, measure_outliers
from adance.evaluation.reference import Reference, Split, as_events, load_reference
from adance.evaluation.schemes import SamplingScheme, choose_schemes, draw
from adance.evaluation.vector_measures import measure_vectors
from adance.training.given_data import check_same_data, describe_data, spread_rows
from adance.training.run import Run

PICTURES = "evaluation"


@dataclass(frozen=True)
class Options:
    """What is measured.

    Attributes:
        n: Samples, and rows of each other set at most.
        features: Extractor by name or path; for vectors none unless it is given.
        features_name: What to call a file's features.
        split: Split that samples are compared with; the field compares with the training split.
        samples: Beginnings of the names of the ways to draw samples; all by default.
        outliers: Names or paths of outlier sets.
        chains: Annealed chains in each direction.
        max_temperatures: Most temperatures of the annealing.
        force: Measure the likelihood of a model that claims no density.
        seed: Seed of everything random.
    """

    n: int = 1000
    features: str | None = None
    features_name: str | None = None
    split: Split = "train"
    samples: tuple[str, ...] = ()
    outliers: tuple[str, ...] = ()
    chains: int = CHAINS
    max_temperatures: int = 3000
    force: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            InputError: A number is out of its range.
        """
        for name, least in (("n", 10), ("chains", 2), ("max_temperatures", 2), ("seed", 0)):
            if not least <= getattr(self, name) < 2**31:
                raise InputError(f"--{name} must be at least {least} and less than 2**31, got {getattr(self, name)}")
        if self.split not in ("train", "test"):
            raise InputError(f"--split must be train or test, got {self.split!r}")

    def as_json(self) -> dict[str, Any]:
        """As JSON would give them back."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


@dataclass(eq=False)
class Evaluation:
    """What was measured.

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
        return {
            "format": 1,
            **self.about,
            "seconds": round(self.seconds, 1),
            "warnings": self.warnings,
            "pictures": self.pictures,
            "measurements": [m.as_json() for m in self.measurements],
        }


def evaluate_run(
    run: Run, options: Options | None = None, *, data: Dataset | None = None, say: Callable[[str], None] | None = None
) -> Evaluation:
    """Measure samples, likelihood and outlier detection of a run, which is only read; pictures go to its folder.

    Args:
        run: The run.
        options: What to measure.
        data: Its data; by default they are loaded as its config says.
        say: Told what is measured next.

    Raises:
        InputError: Something that was asked for cannot be measured.
    """
    options, began, say = options or Options(), time.monotonic(), say or (lambda what: None)
    if data is None:
        data = run.reload_data()
        check_same_data(run.folder, describe_data(data, spread_rows(data)))
    if data.event_shape != run.event_shape:
        raise InputError(f"{data.name} has events of shape {data.event_shape}, but the run needs {run.event_shape}")
    result = Evaluation(_about(run, data, options))
    draws, outliers = choose_schemes(run, options.samples), load_outliers(run, options.outliers)
    save_pictures = _measure_samples(run, data, options, draws, result, say)
    say("outliers")
    result.measurements += measure_outliers(run, data, outliers, n=options.n, seed=options.seed)
    _measure_density(run, data, options, result, say)
    save_pictures()
    result.warnings += [f"{f.name}, {f.samples}: {f.note}" for f in result.measurements if f.note and "n < d" in f.note]
    result.seconds = time.monotonic() - began
    return result


def _about(run: Run, data: Dataset, options: Options) -> dict[str, Any]:
    return {
        "run": str(run.folder.path),
        "data": data.name,
        "step": run.step,
        "weights": run.weights,
        "temperature": 1.0 if run.kernel is None else run.kernel.temperature,
        "seed": options.seed,
        "options": options.as_json(),
        "device": str(run.device),
        "versions": {name: importlib.metadata.version(name) for name in ("adance", "torch", "torchmetrics")},
    }


def _measure_samples(
    run: Run,
    data: Dataset,
    options: Options,
    draws: list[SamplingScheme],
    result: Evaluation,
    say: Callable[[str], None],
) -> Callable[[], None]:
    """Measure every set of samples; what is returned saves pictures of the first."""
    extractor, reference, first = None, None, None
    if data.kind == "image" or options.features is not None:
        say("features of real data")
        extractor = find_extractor(options.features, data, name=options.features_name, seed=0, device=str(run.device))
        reference = load_reference(extractor, data, options.split)
        if isinstance(extractor, Classifier):
            result.about["classifier_accuracy"] = round(extractor.accuracy, 4)
    for i, scheme in enumerate(draws):
        say(f"samples: {scheme.name}, drawing {options.n} chains of {scheme.steps} steps")
        drawn = draw(run, scheme, options.n, options.seed)
        say(f"samples: {scheme.name}, distances")
        for name, x in drawn.items():
            x = _finite(x, name, result)
            _measure_set(run, data, options, extractor, reference, x, name, scheme.steps, result)
        first = drawn[scheme.name] if i == 0 else first
    other: Split = "test" if options.split == "train" else "train"
    size = len(data.test if other == "test" else data.train)
    rows = torch.randperm(size, generator=torch.Generator().manual_seed(options.seed))[: options.n]
    real = as_events(data.batch(rows, other), data.kind)
    name = f"{'held-out data' if other == 'test' else 'training data'} instead of samples"
    if len(real) < SPLITS:
        result.warnings.append(f"{name}: not measured, {len(real)} rows are too few")
    else:
        say(name)
        _measure_set(run, data, options, extractor, reference, real, name, None, result)
    if first is None or extractor is None:
        return lambda: None
    folder = run.folder.path / PICTURES
    return partial(_draw_classes, data, extractor, first, options.n, folder, result)


def _draw_classes(data: Dataset, extractor: Extractor, x: Tensor, n: int, folder: Path, result: Evaluation) -> None:
    result.pictures += [str(Path(PICTURES, name)) for name in save_class_pictures(data, extractor, x, n, folder)]


def _finite(x: Tensor, name: str, result: Evaluation) -> Tensor:
    finite = x.flatten(1).isfinite().all(1)
    if not finite.all():
        lost = int((~finite).sum())
        result.warnings.append(f"{name}: {lost} of {len(x)} chains ended at no finite position and are left out")
    return x[finite]


def _measure_set(
    run: Run,
    data: Dataset,
    options: Options,
    extractor: Extractor | None,
    reference: Reference | None,
    x: Tensor,
    name: str,
    chain_length: int | None,
    result: Evaluation,
) -> None:
    about: dict[str, Any] = {"samples": name, "chain_length": chain_length, "seed": options.seed}
    if data.kind == "vector":
        result.measurements += measure_vectors(run, data, x, split=options.split, **about)
    if extractor is not None and reference is not None:
        result.measurements += measure_features(x, reference, extractor, **about)


def _measure_density(run: Run, data: Dataset, options: Options, result: Evaluation, say: Callable[[str], None]) -> None:
    missing = why_unnormalized(run)
    if missing and not options.force:
        result.warnings.append(
            f"log-likelihood not measured: the model claims no density ({'; '.join(missing)}); --force measures "
            "exp(−E/T) anyway"
        )
        return
    result.measurements += measure_likelihood(
        run,
        data,
        n=options.n,
        chains=options.chains,
        max_temperatures=options.max_temperatures,
        force=options.force,
        seed=options.seed,
        say=say,
    )
    verdict = next(m.note for m in result.measurements if m.metric == "log_z_lower")
    result.warnings.append(f"log Z: {verdict}")
