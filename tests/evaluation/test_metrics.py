from unittest.mock import patch

import pytest
import torch

from adance.evaluation.evaluate import evaluate_run
from adance.evaluation.metrics import SAMPLE_METRICS, register_metric
from adance.evaluation.options import Options
from adance.evaluation.sample_set import SampleSet, for_vectors
from adance.evaluation.schemes import choose_schemes


@pytest.fixture(autouse=True)
def metrics():
    """What a test registers is forgotten after it."""
    with patch.dict(SAMPLE_METRICS):
        yield SAMPLE_METRICS


def test_a_registered_metric_measures_every_set_of_samples(digits_run):
    @register_metric
    def mean_pixel(samples):
        return [samples.measurement("mean_pixel", "mean pixel", float(samples.x.mean()), better="lower")]

    found = evaluate_run(digits_run, Options(n=20, samples=("default",), seed=3)).measurements
    rows = {m.samples: m for m in found if m.metric == "mean_pixel"}
    scheme = choose_schemes(digits_run, ["default"])[0]
    drawn = scheme.sample(digits_run, 20, seed=3)
    assert rows.keys() == {*drawn, "held-out data instead of samples"}
    assert {name: rows[name].value for name in drawn} == {name: float(x.mean()) for name, x in drawn.items()}
    row = rows[scheme.name]
    assert (row.group, row.split, row.n, row.seed, row.better) == ("samples", "train", 20, 3, "lower")
    assert row.chain_length == scheme.steps


def test_a_metric_of_the_same_name_is_replaced(metrics):
    def squared(samples):
        return []

    for _ in range(2):
        register_metric(squared)
    assert len(metrics) == 9
    assert metrics["squared"] is squared


def test_a_metric_for_vectors_skips_images(digits_run, plane_run, digits):
    @for_vectors
    def count(samples):
        return [samples.measurement("count", "count", len(samples.x))]

    images = SampleSet(digits.batch(torch.arange(5)), "rows", None, digits_run, digits)
    plane = plane_run.reload_data()
    vectors = SampleSet(plane.batch(torch.arange(5)), "rows", None, plane_run, plane)
    assert count(images) == []
    assert [m.value for m in count(vectors)] == [5]
    assert vectors.real.shape == (5, 2)
    assert vectors.generator().get_state().equal(vectors.generator().get_state())
