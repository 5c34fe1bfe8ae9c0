import json

import numpy as np
import pytest
import torch
import yaml
from torch import nn

import adance
from adance.contrasts import Logistic
from adance.data import Dataset, Identity
from adance.energies import MLP
from adance.energies.frozen import folded_state
from adance.errors import InputError
from adance.noises import FixedNoise
from adance.objectives import NCE, Contrastive, LogRatio
from adance.training import Settings, Trainer, load
from adance.training.ema import WeightAverage


class Quadratic(nn.Module):
    """A user's energy, whose first argument is not the shape of an event."""

    def __init__(self, power=2):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.power = power

    def forward(self, x):
        return (self.scale * x).abs().pow(self.power).sum(1)


class Plain(Quadratic):
    """Takes no arguments at all."""

    def __init__(self):
        super().__init__(2)


def test_ten_lines_of_use(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = adance.load_data("digits")
    energy = adance.MLP(data.event_shape, hidden=[16])
    objective = adance.AdaNCE(adance.Langevin(steps=3, noise_std=0.005), pool=64, buffer=128)
    trainer = adance.Trainer(energy, objective, data, adance.Settings(steps=10, batch_size=16), show_progress=False)
    run = trainer.fit()
    assert run.sample(5).shape == (5, 1, 8, 8)
    assert run.folder.path.name == "digits-AdaNCE-1"
    again = adance.load("runs/digits-AdaNCE-1")
    assert torch.equal(again.sample(5), run.sample(5))
    assert {path.name for path in run.folder.path.iterdir()} == {
        "config.yaml",
        "data.json",
        "metrics.jsonl",
        "checkpoints",
        "samples",
    }
    assert {path.name for path in run.folder.samples.iterdir()} == {"00000010.npz", "00000010.png"}
    kept = torch.from_numpy(np.load(run.folder.samples / "00000010.npz")["x"])
    assert torch.equal(kept, run.sample(64, seed=0).clamp(-1, 1))


@pytest.mark.parametrize("kind", ["image", "nce"])
def test_the_global_generator_is_never_touched(kind, train, parts, digits, points, tmp_path):
    energy, objective = parts(kind)
    data = digits if kind == "image" else points
    before = torch.get_rng_state()
    settings = Settings(steps=4, batch_size=16, data_noise=0.1)
    run = Trainer(energy, objective, data, settings, tmp_path / "r", show_progress=False).fit()
    run.sample(3, steps=2)
    load(tmp_path / "r", weights="last").sample(3, steps=2)
    Trainer.resume(tmp_path / "r", data, steps=5, show_progress=False).fit()
    assert torch.equal(torch.get_rng_state(), before)


def test_training_depends_on_the_seed_alone(train, tmp_path, tensor_bytes):
    train("image", "a", steps=10, seed=1)
    torch.rand(7)
    train("image", "b", steps=10, seed=1, log_every=1, checkpoint_every=3, sample_every=4)
    train("image", "c", steps=10, seed=2)
    a, b, c = (tensor_bytes(tmp_path / name) for name in "abc")
    assert a == b
    assert a["energy.safetensors"] != c["energy.safetensors"]


def test_reading_a_trainer_changes_nothing(train):
    trainer = train("image")
    names = ("energy", "objective")

    def snapshot():
        state = {(n, k): v.clone() for n in names for k, v in getattr(trainer, n).state_dict().items()}
        flags = [(m.training, [p.requires_grad for p in m.parameters()]) for m in trainer.energy.modules()]
        return state, flags, trainer.generator.get_state()

    before, flags, generator = snapshot()
    run = trainer.run()
    run.sample(4)
    run.sample(4, start="buffer")
    run.score(torch.zeros(2, 1, 8, 8))
    after, flags_after, generator_after = snapshot()
    torch.testing.assert_close(after, before, rtol=0, atol=0, equal_nan=True)
    assert flags == flags_after
    assert torch.equal(generator, generator_after)


def test_the_average_is_the_recursion_of_folded_weights(train, digits, parts, tmp_path):
    energy, objective = parts("image")[0], NCE("uniform")
    settings = Settings(steps=40, batch_size=16, ema=0.7, lr=1e-2)
    trainer = Trainer(energy, objective, digits, settings, tmp_path / "run", show_progress=False)
    wanted = {name: value.double().clone() for name, value in folded_state(energy).items()}
    for step in range(1, 41):
        trainer._optimize(step)
        keep = min(0.7, (1 + step) / (10 + step))
        for name, value in folded_state(energy).items():
            wanted[name] = keep * wanted[name] + (1 - keep) * value.double()
    got = trainer.average.energy.state_dict()
    assert got.keys() == wanted.keys()
    for name, value in got.items():
        torch.testing.assert_close(value.double(), wanted[name], rtol=1e-5, atol=1e-6)
    assert any(not torch.allclose(value, got[name], atol=1e-4) for name, value in folded_state(energy).items())


def test_the_average_of_two_known_weights():
    energy = nn.Linear(1, 1, bias=False)
    nn.init.constant_(energy.weight, 1.0)
    average = WeightAverage(energy, 0.5)
    nn.init.constant_(energy.weight, 2.0)
    average.update(energy, 1)  # keeps 2/11
    assert float(average.energy.weight) == pytest.approx(2 / 11 + 2 * 9 / 11)
    before = float(average.energy.weight)
    average.update(energy, 100)  # keeps a half
    assert float(average.energy.weight) == pytest.approx(before / 2 + 1)


def test_without_average_there_is_none(train, tmp_path):
    run = train("image", ema=0.0).run()
    assert not run.averaged
    assert not load(tmp_path / "run").averaged
    with pytest.raises(InputError, match="no averaged weights"):
        load(tmp_path / "run", weights="average")


def test_gradients_are_clipped_to_the_bound(train, digits, parts, tmp_path):
    energy, objective = parts("image")
    settings = Settings(steps=1, batch_size=16, grad_clip=1e-3)
    trainer = Trainer(energy, objective, digits, settings, tmp_path / "run", show_progress=False)
    trainer._optimize(1)
    assert torch.cat([p.grad.flatten() for p in energy.parameters()]).norm() == pytest.approx(1e-3, rel=1e-3)


def test_log_z_is_left_out_of_the_bound_on_gradients(parts, points, tmp_path):
    energy, objective = parts("nce")
    settings = Settings(steps=1, batch_size=16, grad_clip=1e-3)
    trainer = Trainer(energy, objective, points, settings, tmp_path / "run", show_progress=False)
    trainer.objective.log_ratio.log_z.data += 5  # far off
    trainer._optimize(1)
    assert torch.cat([p.grad.flatten() for p in energy.parameters()]).norm() == pytest.approx(1e-3, rel=1e-3)
    assert trainer.objective.log_ratio.log_z.grad.abs() > 0.1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch_size": 64.0}, "batch_size must be a whole number, got 64.0"),
        ({"steps": "8"}, "steps must be a whole number, got 8"),
        ({"seed": True}, "seed must be a whole number, got True"),
        ({"lr": "1e-3"}, "lr must be a number, got 1e-3"),
        ({"lr": float("nan")}, "lr must be more than 0, got nan"),
        ({"grad_clip": "1"}, "grad_clip must be more than 0, or none, got 1"),
        ({"betas": 0.9}, r"betas must be two numbers in \[0, 1\), got 0.9"),
        ({"betas": (0.9,)}, "betas must be two numbers"),
        ({"betas": (0.9, 1)}, "betas must be two numbers"),
    ],
)
def test_settings_of_another_type_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        Settings(**given)


def test_whole_betas_and_numbers_of_numpy_train(parts, points, tmp_path):
    settings = Settings(steps=np.int64(2), batch_size=16, betas=[0, 0.999], lr=np.float32(0.5))
    assert settings == Settings(steps=2, batch_size=16, betas=(0.0, 0.999), lr=0.5)
    Trainer(*parts("nce"), points, settings, tmp_path / "run", show_progress=False).fit()
    Trainer.resume(tmp_path / "run", points, steps=3, show_progress=False).fit()


def test_metrics_have_the_energies_of_both_splits_the_rate_and_the_weights(train, tmp_path, digits):
    trainer = train("image", steps=7, log_every=3, schedule="linear", ema=0.0)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [3, 6, 7]
    assert rows[-1]["learning_rate"] == pytest.approx(1e-3 * 0.02)
    for split, count, name in (("train", 1400, "energy_train"), ("test", 397, "energy_held_out")):
        spaced = [round(i * (count - 1) / 63) for i in range(64)]
        energies = trainer.run().score(digits.batch(torch.tensor(spaced), split))
        assert rows[-1][name] == pytest.approx(float(energies.mean()), rel=1e-5)
        assert split == "test" or rows[-1]["energy_std"] == pytest.approx(float(energies.std()), rel=1e-4)
    weights = torch.cat([weight.flatten() for weight in trainer.energy.parameters()]).detach()
    assert rows[-1]["weight_rms"] == pytest.approx(float(weights.square().mean().sqrt()), rel=1e-5)
    assert rows[-1]["live_weights"] == 1
    assert all(row["energy_data"] != row["energy_noise"] for row in rows)


def test_an_energy_that_does_not_say_how_it_was_made_is_given_again_to_open_the_run(points, tmp_path):
    settings = Settings(steps=3, batch_size=16)
    trainer = Trainer(Quadratic(), NCE(), points, settings, tmp_path / "run", show_progress=False)
    with pytest.warns(UserWarning, match=r"cannot rebuild the energy: .*Quadratic does not record"):
        run = trainer.fit()
    with pytest.raises(
        InputError, match=r"the energy, because .*Quadratic did not record .* Pass the energy: adance\.load"
    ):
        load(tmp_path / "run")
    x = torch.ones(2, 3)
    assert torch.equal(load(tmp_path / "run", energy=Quadratic()).score(x), run.score(x))
    Trainer.resume(tmp_path / "run", points, Quadratic(), steps=5, show_progress=False).fit()


def test_an_objective_of_any_law_is_trained_and_its_run_opened(points, tmp_path):
    law = torch.distributions.MultivariateNormal(torch.zeros(3), 4 * torch.eye(3))
    energy, objective = adance.MLP((3,), [8]), Contrastive(Logistic(), FixedNoise(law), LogRatio(constant="learned"))
    trainer = Trainer(energy, objective, points, Settings(steps=3), tmp_path / "run", show_progress=False)
    with pytest.warns(UserWarning, match=r"cannot rebuild the objective: .*MultivariateNormal"):
        run = trainer.fit()
    again = load(tmp_path / "run")
    assert again.kernel is None
    assert again.log_normalizer == run.log_normalizer
    with pytest.raises(
        InputError, match=r"because .*Contrastive did not record .* Pass the objective: adance\.Trainer"
    ):
        Trainer.resume(tmp_path / "run", points, steps=5)
    Trainer.resume(tmp_path / "run", points, None, objective, steps=5, show_progress=False).fit()


def test_an_energy_that_is_made_of_nothing_is_made_again(points, tmp_path, recwarn):
    energy = Plain()
    adance.remember(energy, {})
    adance.trust(__name__)
    run = Trainer(energy, NCE(), points, Settings(steps=3), tmp_path / "run", show_progress=False).fit()
    x = torch.ones(2, 3)
    assert torch.equal(load(tmp_path / "run").score(x), run.score(x))
    assert not recwarn


def test_parts_that_remember_but_could_not_be_made_again_are_told_of(points, tmp_path):
    law = torch.distributions.Normal(torch.zeros(3), 2.0)
    adance.remember(law, {"loc": [0.0, 0.0, 0.0], "scale": 2.0})
    law = torch.distributions.Independent(law, 1)
    adance.remember(law, {})
    objective = NCE(FixedNoise(law))
    trainer = Trainer(
        adance.MLP((3,), [8]), objective, points, Settings(steps=3), tmp_path / "run", show_progress=False
    )
    with pytest.warns(UserWarning, match=r"cannot rebuild the objective"):
        run = trainer.fit()
    assert load(tmp_path / "run").log_normalizer == run.log_normalizer


def test_a_class_that_only_the_script_knows_is_told_of(points, tmp_path, monkeypatch):
    monkeypatch.setattr(Quadratic, "__module__", "__main__")
    energy = Quadratic(4)
    adance.remember(energy, {"power": 4})
    trainer = Trainer(energy, NCE(), points, Settings(steps=3), tmp_path / "run", show_progress=False)
    with pytest.warns(UserWarning, match=r"its class is defined in the script itself"):
        trainer.fit()


def test_an_energy_of_ones_own_is_made_again_from_what_it_remembers(points, tmp_path):
    energy = Quadratic(4)
    adance.remember(energy, {"power": 4})
    settings = Settings(steps=5, batch_size=16)
    run = Trainer(energy, NCE(), points, settings, tmp_path / "run", show_progress=False).fit()
    with pytest.raises(InputError, match="Quadratic is not a class of adance: add --trust"):
        load(tmp_path / "run")
    adance.trust(__name__)
    again = load(tmp_path / "run")
    assert again.energy.power == 4
    assert torch.equal(again.score(torch.ones(2, 3)), run.score(torch.ones(2, 3)))
    assert Trainer.resume(tmp_path / "run", points, steps=8, show_progress=False).fit().step == 8
    given = load(tmp_path / "run", energy=Quadratic(4))
    assert torch.equal(given.score(torch.ones(2, 3)), load(tmp_path / "run").score(torch.ones(2, 3)))


def test_a_folder_that_another_trainer_has_taken_meanwhile(points, parts, tmp_path):
    settings = Settings(steps=2, batch_size=16)
    made = [Trainer(*parts("nce"), points, settings, tmp_path / "run", show_progress=False) for _ in range(2)]
    made[0].fit()
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    with pytest.raises(InputError, match="already holds a run"):
        made[1].fit()
    assert {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()} == before
    assert made[0].fit().step == 2


@pytest.mark.parametrize(
    ("energy", "message"),
    [
        (nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)), r"returned shape \(2, 1\) for 2 events; .* shape \(2,\)"),
        (nn.Sequential(nn.Linear(5, 1), nn.Flatten(0)), r"does not accept events of shape \(3,\) of points: .*5"),
        (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), "batch normalization"),
    ],
)
def test_energies_that_do_not_fit_are_refused_before_anything_is_written(energy, message, points, tmp_path):
    with pytest.raises(InputError, match=message):
        Trainer(energy, NCE(), points, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_one_training_row_is_enough(points, tmp_path):
    from dataclasses import replace

    one = replace(points, train=points.train[:1])
    energy = Quadratic()
    adance.remember(energy, {})
    settings = Settings(steps=2, batch_size=1)
    run = Trainer(energy, NCE(), one, settings, tmp_path / "run", show_progress=False).fit()
    assert run.sample(2, steps=1).isfinite().all()


def test_the_config_is_enough_to_build_the_parts_again(train, tmp_path):
    train("image")
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert config["data"] == "digits"
    assert "event_shape" not in config["energy"]["init_args"]
    assert config["energy"]["init_args"]["hidden"] == [16]
    assert config["objective"]["init_args"]["sampler"]["init_args"]["noise_std"] == 0.005
    assert (config["steps"], config["betas"]) == (20, [0.0, 0.99])


def test_no_steps_write_a_run_of_the_initial_weights(train, tmp_path):
    trainer = train("image", steps=0)
    assert load(tmp_path / "run").step == 0
    assert torch.equal(load(tmp_path / "run").sample(2), trainer.run().sample(2))


def test_devices_that_there_are_not_are_refused(points, parts):
    for device in ("abacus", "cpu:1", "cuda:99"):
        with pytest.raises(InputError, match=device):
            Trainer(*parts("nce"), points, device=device)


def test_trackers_are_started_and_told(points, parts, tmp_path, monkeypatch):
    from accelerate import Accelerator

    with pytest.raises(InputError, match="tracker 'crystal ball' is not installed"):
        Trainer(*parts("nce"), points, trackers=["crystal ball"])
    calls = []
    monkeypatch.setattr(Accelerator, "init_trackers", lambda self, name, **_: calls.append(name))
    monkeypatch.setattr(Accelerator, "log", lambda self, row, step: calls.append(step))
    monkeypatch.setattr(Accelerator, "end_training", lambda self: calls.append("end"))
    settings = Settings(steps=4, batch_size=16, log_every=2)
    trainer = Trainer(*parts("nce"), points, settings, tmp_path / "run", show_progress=False)
    trainer.reporter.tracked = True
    trainer.fit()
    resumed = Trainer.resume(tmp_path / "run", points, steps=6, show_progress=False)
    resumed.reporter.tracked = True
    resumed.fit()
    assert calls == ["adance", 2, 4, "end", "adance", 6, "end"]


def test_noise_and_base_are_fitted_to_rows_from_all_over_a_sorted_set(tmp_path):
    low, high = torch.full((15_000, 2), -3.0), torch.full((15_000, 2), 3.0)
    data = Dataset("sorted", "vector", torch.cat([low, high]), low[:10], Identity())
    trainer = Trainer(MLP((2,), (8,)), NCE(), data, Settings(steps=0), tmp_path / "run", show_progress=False)
    density = trainer.objective.noise.density
    torch.testing.assert_close(density.mean, torch.zeros(2), atol=0.01, rtol=0)
    torch.testing.assert_close(density.std, torch.full((2,), 3.0), atol=0.01, rtol=0)
