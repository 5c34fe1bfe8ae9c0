"""All measures of one set of samples in the features of one extractor."""

import warnings

from torch import Tensor

from adance.evaluation.distances import frechet_distance, inception_score, kernel_distance
from adance.evaluation.extractor import Extractor, classify, extract
from adance.evaluation.measurement import Measurement
from adance.evaluation.precision_recall import precision_recall
from adance.evaluation.reference import KEPT_ROWS, Reference

K, SPLITS = 3, 10


def measure_features(
    x: Tensor,
    reference: Reference,
    extractor: Extractor,
    *,
    samples: str = "samples",
    chain_length: int | None = None,
    seed: int = 0,
    splits: int = SPLITS,
) -> list[Measurement]:
    """Fréchet and kernel distance, precision and recall, and the score of class probabilities where there are classes.

    Args:
        x: Events ``(n, *event)`` in the model's units, images in [−1, 1].
        reference: Of the same extractor.
        extractor: Whose features.
        samples: What ``x`` is called in the measurements.
        chain_length: Of the chains that drew ``x``.
        seed: Of subsets and splits; also noted as the seed of ``x``.
        splits: Parts of the Inception score.

    Raises:
        InputError: Too few events for a measure.
    """
    features = extract(extractor, x)
    common = {
        "group": "samples",
        "samples": samples,
        "split": reference.split,
        "n": len(x),
        "extractor": extractor.name,
        "chain_length": chain_length,
        "seed": seed,
    }

    def measurement(measure: str, name: str, value: float, n_reference: int | None, **more: object) -> Measurement:
        return Measurement(metric=measure, name=name, value=value, n_reference=n_reference, **common, **more)  # type: ignore[arg-type]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        distance = frechet_distance(reference, features)
    note = "; ".join(str(warning.message) for warning in caught) or None
    kernel, kernel_spread = kernel_distance(reference, features, seed=seed)
    compared = reference.rows[: max(len(x), K + 1)]
    precision, recall = precision_recall(compared, features[:KEPT_ROWS], K)
    rows = len(reference.rows)
    measurements = [
        measurement("frechet_distance", extractor.distance_name, distance, reference.n, better="lower", note=note),
        measurement(
            "kernel_distance", _named(extractor, "kernel distance"), kernel, rows, spread=kernel_spread, better="lower"
        ),
        measurement("precision", _named(extractor, f"precision, k = {K}"), precision, len(compared), better="higher"),
        measurement("recall", _named(extractor, f"recall, k = {K}"), recall, len(compared), better="higher"),
    ]
    log_probabilities = classify(extractor, x)
    if log_probabilities is not None:
        score, spread = inception_score(log_probabilities, splits=splits, seed=seed)
        name = "Inception score" if extractor.name == "inception" else f"{extractor.name} score (Inception's formula)"
        measurements.append(
            measurement("inception_score", name, score, None, spread=spread, better="higher", note=f"{splits} splits")
        )
    return measurements


def _named(extractor: Extractor, measure: str) -> str:
    return f"{measure}, {extractor.name} features"
