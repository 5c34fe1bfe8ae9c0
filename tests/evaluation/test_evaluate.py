import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import adance
from adance.cli import main
from adance.data import load_data
from adance.energies.analytic import Gaussian, Uniform
from adance.errors import InputError
from adance.evaluation.evaluate import evaluate_run
from adance.evaluation.likelihood import measure_likelihood
from adance.evaluation.normalizable import continuous_rows, density_base, why_unnormalized
from adance.evaluation.options import Options
from adance.evaluation.schemes import all_schemes, choose_schemes
from adance.training import Settings, Trainer

PAGE = Path(__file__).parents[2] / "docs" / "evaluation.md"


def files(run):
    return {p: p.read_bytes() for p in (run.folder.path / "checkpoints").rglob("*") if p.is_file()}


def test_the_command_writes_every_measurement_with_what_it_is_of(digits_run, capsys):
    before = files(digits_run)
    assert main(["evaluate", str(digits_run.folder.path), "--n", "100", "--quiet"]) == 0
    assert files(digits_run) == before
    shown = capsys.readouterr().out
    assert "FD-classifier" in shown
    assert "AUROC of −E, noise" in shown

    found = json.loads((digits_run.folder.path / "evaluation.json").read_text())
    page = json.loads(re.search(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1])
    assert list(found) == list(page)
    assert {tuple(m) for m in found["measurements"]} == {tuple(m) for m in page["measurements"]}
    assert found["step"] == 60
    assert found["weights"] == "moving average"
    assert found["pictures"] == ["evaluation/class_given_x.png", "evaluation/class_marginal.png"]
    for name in found["pictures"]:
        assert (digits_run.folder.path / name).read_bytes().startswith(b"\x89PNG")
    samples = [m for m in found["measurements"] if m["group"] == "samples"]
    assert {m["metric"] for m in samples} == {
        "frechet_distance", "kernel_distance", "precision", "recall", "inception_score"
    }  # fmt: skip
    for m in samples:
        assert m["extractor"] == "classifier"
        assert m["split"] == "train"
        assert m["n"] == 100
        assert m["seed"] == 0
        assert (m["chain_length"] is None) == ("held-out" in m["samples"])
        assert "FID" not in m["name"]
    lengths = {m["samples"]: m["chain_length"] for m in samples}
    assert lengths == {
        "default from noise": 48, "default from noise, last 10 noise-free": 48,
        "short-run from noise": 12, "short-run from noise, last 4 noise-free": 12,
        "short-run from the buffer": 12, "short-run from the buffer, last 4 noise-free": 12,
        "long-run from noise": 120, "long-run from noise, last 10 noise-free": 120,
        "long-run from the buffer": 120, "long-run from the buffer, last 10 noise-free": 120,
        "held-out data instead of samples": None,
    }  # fmt: skip
    assert any("log-likelihood not measured: the model is not normalizable" in w for w in found["warnings"])


def test_each_long_part_is_announced(plane_run):
    said = []
    options = Options(n=20, samples=("short-run",), chains=10, max_temperatures=5)
    evaluate_run(plane_run, options, say=said.append)
    assert said == [
        "samples: short-run from noise, drawing 20 chains of 5 steps",
        "samples: short-run from noise, distances",
        "samples: short-run from the buffer, drawing 20 chains of 5 steps",
        "samples: short-run from the buffer, distances",
        "held-out data instead of samples",
        "outliers",
        "likelihood: drawing 10 chains of 500 steps from training rows",
        "likelihood: choosing temperatures, at most 5",
        "likelihood: annealing 10 chains over 5 temperatures, there and back",
    ]


def test_one_seed_gives_one_evaluation(digits_run):
    options = Options(n=50, samples=("short-run",), seed=3)
    first, second = (evaluate_run(digits_run, options).as_json() for _ in range(2))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    other = evaluate_run(digits_run, Options(n=50, samples=("short-run",), seed=4)).as_json()
    assert other["measurements"] != first["measurements"]


def test_evaluating_changes_neither_the_model_nor_the_global_generator(digits_run):
    weights = {name: value.clone() for name, value in digits_run.energy.state_dict().items()}
    state = torch.get_rng_state()
    evaluate_run(digits_run, Options(n=20, samples=("default",)))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, weights[name]) for name, value in digits_run.energy.state_dict().items())
    assert not any(p.requires_grad for p in digits_run.energy.parameters())


def test_fewer_samples_than_features_are_a_warning(digits_run):
    found = evaluate_run(digits_run, Options(n=40, features="pixels", samples=("default",)))
    assert any("n = 40 events in d = 64 features: n < d" in warning for warning in found.warnings)
    assert all(np.isfinite(m.value) for m in found.measurements)
    assert not any(m.metric == "inception_score" for m in found.measurements)


def test_fewer_samples_than_splits_are_an_error(digits_run, capsys):
    assert main(["evaluate", str(digits_run.folder.path), "--n", "7", "--quiet"]) == 2
    assert "--n must be at least 10 and less than 2**31, got 7" in capsys.readouterr().err


def test_schemes_are_default_short_and_long_runs_from_noise_and_buffer(digits_run):
    schemes = {scheme.name: (scheme.start, scheme.steps, scheme.noise_free) for scheme in all_schemes(digits_run)}
    assert schemes == {
        "default from noise": ("noise", 48, 10),
        "short-run from noise": ("noise", 12, 4),
        "short-run from the buffer": ("buffer", 12, 4),
        "long-run from noise": ("noise", 120, 10),
        "long-run from the buffer": ("buffer", 120, 10),
    }


def test_exact_chains_have_no_long_runs(plane_run):
    kernel = plane_run.sampler
    lengths = {scheme.name: scheme.steps for scheme in all_schemes(plane_run)}
    assert kernel.exact
    assert lengths.pop("default from noise") == 20 * kernel.steps
    assert {name.split()[0] for name in lengths} == {"short-run"}


def test_default_samples_are_those_of_adance_sample(digits_run):
    scheme = choose_schemes(digits_run, ["default"])[0]
    drawn = scheme.sample(digits_run, 20, seed=5)
    assert torch.equal(drawn[scheme.name], digits_run.sample(20, seed=5).clamp(-1, 1))
    noisy, still = drawn.values()
    # Ten noises of 0.005 each are missing, so the two differ by about 0.016 in each pixel.
    assert 0 < float((noisy - still).std()) < 0.05


def test_a_scheme_that_does_not_exist_is_named(digits_run):
    said = '--samples tall: no sampling scheme starts with "tall". Available: default from noise; short-run from noise'
    with pytest.raises(InputError, match=re.escape(said)):
        choose_schemes(digits_run, ["tall"])


def test_given_outliers_are_measured(digits_run, tmp_path):
    path = tmp_path / "bright.npz"
    np.savez(path, x=np.full((30, 8, 8), 255, np.uint8) - np.eye(8, dtype=np.uint8))
    found = evaluate_run(digits_run, Options(n=50, samples=("default",), outliers=(str(path),)))
    measurements = {m.samples: m for m in found.measurements if m.metric == "auroc"}
    assert set(measurements) == {str(path), "interpolations", "noise", "training rows"}
    assert measurements[str(path)].n == 30
    assert measurements[str(path)].value > 0.9


def test_a_short_run_model_is_not_normalizable_unless_forced(digits_run, digits):
    assert any("temperature 1.25e-05 instead of 1" in reason for reason in why_unnormalized(digits_run))
    assert any("no base term" in reason for reason in why_unnormalized(digits_run))
    with pytest.raises(InputError, match="is not normalizable"):
        measure_likelihood(digits_run, digits)
    measurements = measure_likelihood(digits_run, digits, Options(n=20, chains=20, max_temperatures=30, force=True))
    lower = next(m for m in measurements if m.metric == "log_z_lower")
    assert lower.name == "log Z, from below, not an estimate"
    assert "the model is not normalizable" in lower.note


def test_likelihood_on_the_plane_agrees_with_the_grid(plane_run):
    assert why_unnormalized(plane_run) == []
    found = evaluate_run(plane_run, Options(n=400, samples=("short-run",), chains=300))
    measurements = {m.metric: m for m in found.measurements if m.group == "likelihood"}
    z = measurements["log_z_grid"].value
    assert measurements["log_z_lower"].value < z < measurements["log_z_upper"].value
    assert measurements["log_z_upper"].value - measurements["log_z_lower"].value < 0.5
    low, high = measurements["log_likelihood_lower"].value, measurements["log_likelihood_upper"].value
    assert low < measurements["log_likelihood_grid"].value < high
    assert measurements["bits_per_dimension_upper"].value == pytest.approx(-low / 2 / np.log(2))
    # KL = −H(data) − E log p, and 8 Gaussians of deviation 0.2 have entropy log 8 + 1 + log(2π·0.04).
    entropy = np.log(8) + 1 + np.log(2 * np.pi * 0.04)
    error = 3 / np.sqrt(400)  # the deviation of log p of a normal law in the plane is 1
    assert measurements["kl_divergence"].value == pytest.approx(
        -entropy - measurements["log_likelihood_grid"].value, abs=error
    )
    assert measurements["log_z_backward"].name == "log Z, annealed backward from chains"
    assert "no strict bound" in measurements["log_z_lower"].note
    metrics = {m.metric for m in found.measurements if m.group == "samples"}
    assert metrics == {
        "squared_mmd", "sliced_wasserstein", "stein_discrepancy", "modes_covered", "in_modes", "mode_imbalance"
    }  # fmt: skip


def test_annealing_begins_at_the_models_own_base(plane_run, digits_run):
    base = density_base(plane_run)
    assert isinstance(base, Gaussian)
    assert torch.equal(base.mean, plane_run.energy.base.center)
    assert isinstance(density_base(digits_run), Uniform)


def with_chains(run, **settings):
    return dataclasses.replace(run, kernel=adance.Langevin(temperature=1.0, step_size=0.01, **settings))


def test_levels_are_the_bins_that_training_fills(digits_run, digits, generator):
    x = digits.batch(torch.arange(200))
    rows, log_volumes = continuous_rows(digits_run, x, generator)
    levels = ((x + 1) * 8).round()
    assert torch.equal(((rows + 1) * 8).round(), levels)
    assert (rows - x).mean().abs() < 4 / 8 / np.sqrt(12 * x.numel())
    # The uniform law on the box gives every image of 64 pixels the probability 17^{−64}.
    base = density_base(digits_run)
    torch.testing.assert_close(base.log_prob(rows) + log_volumes, torch.full((200,), -64 * np.log(17)).double())


@pytest.mark.parametrize("bounds", [None, (-1.0, 1.0), (-1.05, 2.0)])
def test_the_masses_of_all_levels_add_up_to_one(digits_run, generator, bounds):
    run = with_chains(digits_run, bounds=bounds)
    x = torch.linspace(-1, 1, 17)[:, None, None, None].expand(-1, 1, 8, 8)
    rows, log_volumes = continuous_rows(run, x, generator)
    low, high = bounds or (-17 / 16, 17 / 16)
    assert (rows >= low).all()
    assert (rows <= high).all()
    mass = (log_volumes / 64).exp().sum().item()  # of one pixel
    assert mass == pytest.approx(min(high, 17 / 16) - low)


def test_a_log_likelihood_that_is_known_comes_out(digits_run, digits):
    """A flat energy is the uniform law, and annealing has nothing to do; bins at the bounds are half as wide."""

    class Flat(torch.nn.Module):
        def forward(self, x):
            return 0 * x.flatten(1).sum(1) + 2.0

    run = dataclasses.replace(with_chains(digits_run, bounds=(-1.0, 1.0)), energy=Flat())
    assert why_unnormalized(run) == []
    measurements = {f.metric: f for f in measure_likelihood(run, digits, Options(n=50, chains=20))}
    assert measurements["log_z_forward"].value == pytest.approx(64 * np.log(2) - 2, rel=1e-5)
    ends = ((digits.test[:50] == 0) | (digits.test[:50] == 16)).double().mean().item()
    assert measurements["bits_per_dimension_upper"].value == pytest.approx(4 + ends, rel=1e-5)

    run = dataclasses.replace(with_chains(digits_run), energy=Flat())
    measurements = {f.metric: f for f in measure_likelihood(run, digits, Options(n=50, chains=20, force=True))}
    assert measurements["bits_per_dimension_upper"].value == pytest.approx(np.log2(17), rel=1e-5)


def test_chains_with_bounds_have_their_density_inside_them_alone(tmp_path):
    data = load_data("moons")
    langevin = adance.Langevin(steps=5, step_size=0.005, noise_std=0.1, bounds=(-1.5, 1.5))
    energy = adance.MLP((2,), [8], base=False)
    settings = Settings(steps=2, batch_size=16)
    objective = adance.AdaNCE(langevin, interval=1, start="rejuvenated", buffer=64)
    run = Trainer(energy, objective, data, settings, tmp_path, device="cpu", show_progress=False).fit()
    found = {f.metric: f for f in measure_likelihood(run, data, Options(n=200, chains=200))}
    assert found["log_z_lower"].value - 0.1 < found["log_z_grid"].value < found["log_z_upper"].value + 0.1
    outside = int((data.batch(torch.arange(200), "test").abs() > 1.5).any(1).sum())
    assert outside > 0
    assert found["log_likelihood_grid"].value == found["log_likelihood_lower"].value == -np.inf
    assert f"{outside} of 200 rows are outside" in found["log_likelihood_lower"].note


def test_data_that_changed_since_training_are_refused(tmp_path):
    x = torch.randn(100, 2, generator=torch.Generator().manual_seed(0)).numpy()
    np.save(tmp_path / "x.npy", x)
    data = load_data(tmp_path / "x.npy")
    run = Trainer(
        adance.MLP((2,), [8]), adance.NCE(), data, Settings(steps=1, batch_size=8), tmp_path / "run", device="cpu"
    ).fit()
    np.save(tmp_path / "x.npy", 1000 * x + 5)
    with pytest.raises(InputError, match="have changed since training"):
        evaluate_run(run, Options(n=20))


def test_nothing_is_drawn_if_an_outlier_set_does_not_exist(digits_run):
    before = {path: path.read_bytes() for path in digits_run.folder.path.glob("evaluation/*")}
    with pytest.raises(InputError, match="nope"):
        evaluate_run(digits_run, Options(n=20, samples=("short-run",), outliers=("nope.npz",)))
    assert {path: path.read_bytes() for path in digits_run.folder.path.glob("evaluation/*")} == before
