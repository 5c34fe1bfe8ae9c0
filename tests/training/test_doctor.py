"""What the checks find in metrics that are made for them, in recorded ones, and in runs that are broken on purpose."""

import logging
import math
from pathlib import Path

import pytest
import torch
from torch import nn

import adance
from adance.cli import main
from adance.energies import Gaussian
from adance.errors import DivergedError
from adance.objectives import NCE, AdaNCE
from adance.samplers import MALA
from adance.training import Settings, Trainer
from adance.training.doctor import CHECKS, Watch, diagnose
from adance.training.run_folder import RunFolder

PRETRAINED = Path(adance.__file__).parent / "pretrained"
CHAINS = {"step_size": 0.5, "steps": 10, "noise_std": 0.005}
CONFIG = {
    "lr": 1e-3,
    "objective": {
        "class_path": "adance.AdaNCE",
        "init_args": {"sampler": {"class_path": "adance.Langevin", "init_args": CHAINS}, "ratio_temperature": 1.0},
    },
}
WELL = {
    "loss": 0.1,
    "energy_data": 1.0,
    "energy_noise": 1.1,
    "auc": 0.7,
    "ratio_std": 1.0,
    "effective_sample_share": 0.5,
    "gradient_norm": 1.0,
    "acceptance": 1.0,
    "restarted_chains": 0.0,
    "energy_train": 1.0,
    "energy_held_out": 1.0,
    "energy_std": 1.0,
    "weight_rms": 0.1,
    "live_weights": 1.0,
    "learning_rate": 1e-3,
}
OF_CHAINS = ("restarted_chains", "gradient_norm", "acceptance")


def history(lines=8, every=50, without=(), **changed):
    """Lines at steps 50, 100, …; a changed metric is a number or a function of the step."""
    rows = []
    for step in range(every, every * lines + 1, every):
        now = {name: value(step) if callable(value) else value for name, value in changed.items()}
        rows.append({"step": step, **{name: value for name, value in (WELL | now).items() if name not in without}})
    return rows


def moving(energy, **others):
    """Lines in which all energies are moved to ``energy``, a function of the step."""
    names = ("energy_data", "energy_noise", "energy_train", "energy_held_out")
    return history(**dict.fromkeys(names, energy), **others)


def causes(rows, config=CONFIG):
    return [finding.cause for finding in diagnose(rows, config).findings]


def to_and_fro(size):
    """Mean energies that single steps move by ``size``, now up, now down."""
    return lambda step: 1.0 + size * (-1) ** (step // 50)


@pytest.mark.parametrize(
    ("cause", "sick", "well", "without"),
    [
        ("dead network", {"live_weights": 0.01}, {"live_weights": 0.04}, ()),
        ("dead network", {"energy_std": 0.0}, {"energy_std": 1e-6, "energy_noise": 1 + 1e-7}, ()),
        ("learning rate too small", {"learning_rate": 0.5e-5}, {"learning_rate": 2e-5}, ()),
        ("learning rate too large", {"energy_data": to_and_fro(10)}, {"energy_data": to_and_fro(2.5)}, ()),
        ("noise does not cover the data", {"auc": 0.999}, {"auc": 0.99}, OF_CHAINS),
        ("chains never reach the data", {"auc": 0.999}, {"auc": 0.99}, ()),
        ("ratio temperature too large", {"ratio_std": 0.02, "auc": 1.0}, {"ratio_std": 0.1, "auc": 0.9}, ()),
        ("ratio temperature too large", {"ratio_std": 0.02, "auc": 0.85}, {"ratio_std": 0.02, "auc": 0.75}, ()),
        ("ratio temperature too small", {"ratio_std": 60.0}, {"ratio_std": 15.0}, ()),
        ("energies drift", {"energy_noise": lambda step: 0.12 * step}, {"energy_noise": lambda step: 0.03 * step}, ()),
        ("overfitted energy", {"energy_held_out": 2.5}, {"energy_held_out": 1.6}, ()),
    ],
)
def test_a_cause_is_found_beyond_its_bound_and_not_before(cause, sick, well, without):
    assert causes(history(without=without, **sick)) == [cause]
    assert causes(history(without=without, **well)) == []


def test_a_finding_has_the_numbers_and_the_setting():
    (finding,) = diagnose(history(auc=0.9991, gradient_norm=0.01), CONFIG).findings
    assert "AUC is at least 0.9991 in the last 7 lines" in finding.evidence
    assert "in 10 steps the gradient moves a chain by 0.05" in finding.evidence
    assert "raise objective.sampler.step_size (now 0.5)" in finding.cure
    (far,) = diagnose(history(auc=0.9991, gradient_norm=10.0), CONFIG).findings
    assert "lower objective.sampler.noise_std (now 0.005;" in far.cure
    (stuck,) = diagnose(history(auc=0.9991, acceptance=0.01), CONFIG).findings
    assert "lower objective.sampler.step_size: 1.0% of the proposals are accepted" in stuck.cure
    assert str(stuck) == f"{stuck.cause}: {stuck.evidence}. Try: {stuck.cure}"


def test_one_good_line_is_enough_against_an_auc_of_1():
    assert causes(history(auc=lambda step: 0.9 if step == 250 else 1.0)) == []


def test_early_lines_do_not_count_but_for_gradients():
    assert causes(history(lines=4, every=20, auc=1.0, ratio_std=1e4, energy_held_out=9.0)) == []
    assert causes(history(lines=1, every=20, live_weights=0.0)) == ["dead network"]


def test_chains_at_long_intervals_get_more_steps():
    arguments = CONFIG["objective"]["init_args"] | {"interval": 50}
    rare = CONFIG | {"objective": CONFIG["objective"] | {"init_args": arguments}}
    assert causes(history(auc=1.0)) == ["chains never reach the data"]
    assert causes(history(auc=1.0), rare) == []
    assert causes(history(lines=12, auc=1.0), rare) == ["chains never reach the data"]


def test_a_single_jump_is_no_learning_rate():
    assert causes(history(energy_data=lambda step: 100.0 if step == 300 else 1.0)) == []


def test_the_present_counts_and_not_the_past():
    mended = history(lines=40, ratio_std=lambda step: 100.0 if step < 1000 else 1.0)
    assert causes(mended) == []
    assert causes(mended[:20]) == ["ratio temperature too small"]


def test_a_trend_must_be_fast_go_on_and_lead_one_way():
    assert causes(moving(lambda step: -0.12 * step)) == ["energies drift"]
    assert causes(moving(lambda step: -0.03 * step)) == []
    assert causes(moving(lambda step: -20 * math.sqrt(step))) == ["energies drift"]
    assert causes(moving(lambda step: -40 * (1 - math.exp(-step / 60)))) == []
    assert causes(moving(lambda step: -0.12 * step + 10 * (step == 300))) == []


def test_noise_that_training_adds_to_data_is_no_jump():
    assert causes(history(energy_data=25.0, energy_noise=25.1)) == []


def test_warmup_is_not_a_small_learning_rate():
    rising = history(learning_rate=lambda step: 1e-8 * step)
    assert causes(rising) == ["learning rate too small"]
    assert causes(rising, CONFIG | {"warmup": 1000}) == []


def test_an_unfitted_constant_has_a_small_temperature_on_purpose():
    objective = {"class_path": "adance.AdaNCE", "init_args": {"center": False, "margin": 0.01}}
    assert causes(history(ratio_std=1e4), CONFIG | {"objective": objective}) == []


def test_a_model_that_is_its_own_noise_has_no_flat_ratio():
    assert causes(history(ratio_std=0.0, auc=0.9)) == []


@pytest.mark.parametrize(("step", "cause"), [(1, "no finite start"), (2, "learning rate too large")])
def test_divergence_is_explained(step, cause):
    assert causes([*history(lines=step - 1, every=1), {"step": step, "diverged_at": step}]) == [cause]


def test_energies_that_drift_until_they_diverge_come_before_the_learning_rate():
    rows = [*moving(lambda step: -2.0 * step), {"step": 420, "diverged_at": 417}]
    assert causes(rows) == ["energies drift", "learning rate too large"]


def test_the_severest_cause_comes_first():
    assert causes(history(energy_held_out=9.0, ratio_std=60.0, auc=1.0)) == [
        "chains never reach the data",
        "ratio temperature too small",
        "overfitted energy",
    ]


def test_a_check_without_its_metrics_is_not_made():
    everything = diagnose(history(), CONFIG)
    assert len(everything.checked) == len(CHECKS) - 2  # no fixed noise, no divergence
    assert str(everything).startswith("nothing found in 8 lines of metrics up to step 400; checked: gradients, ")
    less = diagnose(history(without=("auc", "energy_train")), CONFIG)
    assert less.checked == ("gradients", "too small a learning rate")
    early = "checked: nothing; most checks need 3 lines from step 100 on"
    assert str(diagnose(history(lines=1, without=WELL), CONFIG)).endswith(f"1 line of metrics up to step 50; {early}")
    assert str(diagnose([], CONFIG)).endswith(f"0 lines of metrics up to step 0; {early}")


@pytest.mark.parametrize("name", ["digits", "mnist"])
@pytest.mark.parametrize("lines", [3, 10, 80])
def test_recorded_good_runs_are_silent(name, lines):
    folder = RunFolder(PRETRAINED / name)
    found = diagnose(folder.read_metrics()[:lines], folder.read_config())
    assert found.findings == ()
    assert "whether chains reach the data" in found.checked


def fit(energy, objective, data, out, **settings):
    numbers = {"steps": 200, "batch_size": 32, "log_every": 100, "sample_every": 0, **settings}
    return Trainer(energy, objective, data, Settings(**numbers), out, show_progress=False, device="cpu").fit()


def test_a_dead_network_is_said_once_while_it_trains(points, tmp_path, caplog, capsys):
    energy = adance.MLP((3,), [16])
    nn.utils.vector_to_parameters(torch.zeros(sum(w.numel() for w in energy.parameters())), energy.parameters())
    with caplog.at_level(logging.WARNING, "adance"):
        run = fit(energy, NCE(), points, tmp_path / "run")
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("step ")]
    assert len(said) == 1
    assert said[0].startswith(
        "step 50: dead network: 0.012 of the weights have had a nonzero gradient"
    )  # 1 of 81, a bias
    assert run.diagnose().findings[0].cause == "dead network"
    assert main(["doctor", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.startswith("dead network: ")


def test_noise_far_from_the_data_is_found(points, tmp_path):
    far = Gaussian(torch.full((3,), 9.0), torch.full((3,), 0.5))
    assert fit(adance.MLP((3,), [16]), NCE(far), points, tmp_path / "run", log_every=50).diagnose().findings[
        0
    ].cause == ("noise does not cover the data")


def test_divergence_has_a_last_line_and_its_cause_in_the_error(points, tmp_path):
    torch.manual_seed(0)
    with pytest.raises(
        DivergedError, match=r"; likely cause: learning rate too large \(try: divide lr by 10 \(now 100\)"
    ):
        fit(adance.MLP((3,), [16]), NCE(), points, tmp_path / "run", lr=100.0)
    rows = RunFolder(tmp_path / "run").read_metrics()
    assert rows[-1]["step"] == rows[-1]["diverged_at"] > 1
    assert causes(rows)[0] == "learning rate too large"


def test_looking_early_changes_nothing(points, tmp_path, monkeypatch):
    def weights(out):
        torch.manual_seed(1)
        energy = adance.MLP((3,), [16])
        fit(energy, AdaNCE(MALA(steps=2), interval=7), points, out, steps=60)
        return energy.state_dict()

    looked = weights(tmp_path / "looked")
    monkeypatch.setattr("adance.training.trainer.EARLY", ())
    blind = weights(tmp_path / "blind")
    assert looked.keys() == blind.keys()
    assert all(torch.equal(looked[name], blind[name]) for name in looked)
    for name in ("looked", "blind"):
        assert [row["step"] for row in RunFolder(tmp_path / name).read_metrics()] == [60]


def test_a_long_run_is_watched_by_its_beginning_and_its_end(tmp_path, monkeypatch):
    seen = []

    def spy(rows, config):
        seen.append(rows)
        return diagnose(rows, config)

    monkeypatch.setattr("adance.training.doctor.watch.diagnose", spy)
    folder = RunFolder(PRETRAINED / "digits")
    watch = Watch(folder)
    for row in history(lines=300, every=1):
        watch.look({**row, "step": 8000 + row["step"]})
    assert [row["step"] for row in seen[-1]] == [*range(100, 5001, 100), *range(8251, 8301)]


def test_a_rate_that_falls_in_the_end_was_not_too_small():
    assert causes(history(lines=100, learning_rate=lambda step: 1e-3 if step < 200 else 1e-9)) == []


def test_a_resumed_run_is_judged_with_its_earlier_lines(points, tmp_path, monkeypatch):
    energy = adance.MLP((3,), [16])
    fit(energy, NCE(), points, tmp_path / "run", steps=300)
    seen = []

    def spy(rows, config):
        seen.append([row["step"] for row in rows])
        return diagnose(rows, config)

    monkeypatch.setattr("adance.training.doctor.watch.diagnose", spy)
    Trainer.resume(tmp_path / "run", points, steps=400, show_progress=False).fit()
    assert seen == [[100, 200, 300, 400]]
