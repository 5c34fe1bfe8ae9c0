from io import StringIO

from rich.console import Console

from adance.evaluation.evaluate import Evaluation
from adance.evaluation.measurement import Measurement
from adance.evaluation.tables import print_tables

METRICS = {
    "squared_mmd": "squared MMD, Gaussian kernel",
    "sliced_wasserstein": "sliced Wasserstein distance",
    "stein_discrepancy": "squared kernel Stein discrepancy from the model",
}


def shown(measurements, width=80):
    out = StringIO()
    about = {"run": "runs/table", "step": 5, "weights": "last"}
    print_tables(Evaluation(about, measurements), Console(file=out, width=width))
    return out.getvalue()


def of_samples(name, chain_length):
    return [
        Measurement("samples", metric, title, -0.01235, better="lower", samples=name, n=1000, chain_length=chain_length)
        for metric, title in METRICS.items()
    ]


def test_metrics_of_vectors_fit_80_columns_a_line_for_each_set_of_samples():
    names = ["short-run from the buffer", "long-run from the buffer"]
    text = shown([*of_samples(names[0], 50), *of_samples(names[1], 2000), *of_samples("held-out data", None)])
    for name in (*names, "held-out data"):
        (line,) = (line for line in text.splitlines() if line.startswith(name))
        assert line.count("-0.01235") == 3
    assert text.count("↓") == 4  # one above each metric, one below them that says what it means
    assert "↓ lower is better, ↑ higher" in text
    assert "near 0 for equal distributions" in " ".join(text.split())


def test_with_many_metrics_the_samples_are_still_named():
    more = [
        Measurement(
            "samples", f"metric {i}", "discrimination of " + "abcdefgh"[i], 1.5, 0.25, samples="default from noise"
        )
        for i in range(5)
    ]
    assert "default" in shown(more)


def test_training_rows_are_best_near_one_half():
    measurements = [
        Measurement("outliers", "auroc", f"AUROC of −E, {name}", value, better=better, samples=name)
        for name, value, better in (("noise", 0.97, "higher"), ("training rows", 0.49, None))
    ]
    lines = shown(measurements).splitlines()
    assert any(line.startswith("AUROC of −E, noise ↑") for line in lines)
    assert any(line.startswith("AUROC of −E, training rows ≈½") for line in lines)
    assert "≈½ near 0.5" in " ".join(lines)
