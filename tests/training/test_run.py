import math

import pytest
import torch
from torch import nn

import adance
from adance.data import Identity
from adance.energies import Gaussian
from adance.energies.frozen import folded_state
from adance.errors import InputError
from adance.samplers import MALA
from adance.training import Run, load
from adance.training.checkpoint import load_weights, save_tensors
from adance.training.run_folder import RunFolder

RHO = 0.8


class Correlated(nn.Module):
    """The normal law of the plane with means 1 and −2, deviations 1 and 2, and correlation ρ."""

    def forward(self, x):
        a, b = x[:, 0] - 1, (x[:, 1] + 2) / 2
        return (a * a - 2 * RHO * a * b + b * b) / (2 * (1 - RHO**2))


def run_of(energy, mean, std, kernel=None):
    data = {
        "kind": "vector",
        "event_shape": [len(mean)],
        "mean": mean,
        "std": std,
        "transform": Identity().state(),
    }
    return Run(RunFolder("nowhere"), energy, kernel, data, 0, False)


def test_samples_depend_on_the_seed_alone(train, tmp_path):
    run = train("image").run()
    first = run.sample(6, seed=3)
    torch.rand(5)
    assert torch.equal(run.sample(6, seed=3), first)
    assert torch.equal(load(tmp_path / "run").sample(6, seed=3), first)
    assert not torch.equal(run.sample(6, seed=4), first)


@pytest.mark.parametrize("kind", ["image", "vector", "nce"])
def test_a_loaded_run_has_the_trainers_energies(kind, train, tmp_path, digits, points):
    trainer = train(kind, steps=20, checkpoint_every=10)
    data = digits if kind == "image" else points
    x = data.batch(torch.arange(30), "test")
    last = load(tmp_path / "run", weights="last")
    average = load(tmp_path / "run", weights="average")
    assert (last.averaged, average.averaged, load(tmp_path / "run").averaged) == (False, True, True)
    with torch.no_grad():
        assert torch.equal(last.score(x), trainer.energy.eval()(x))
        assert torch.equal(average.score(x), trainer.average.energy(x))
    assert torch.equal(load(tmp_path / "run").score(x), trainer.run().score(x))
    assert not torch.equal(last.score(x), average.score(x))
    torch.testing.assert_close(average.score(x, batch_size=7), average.score(x))
    assert not any(p.requires_grad for p in last.energy.parameters())
    assert not last.energy.training
    assert last.sampler.steps == (trainer.objective.noise.chains.kernel.steps if kind != "nce" else 100)


def test_the_checkpoint_of_any_step_is_loaded(train, tmp_path):
    train("image", "short", steps=10, ema=0.9)
    train("image", "long", steps=30, checkpoint_every=10, ema=0.9)
    short = load(tmp_path / "short", weights="last")
    then = load(tmp_path / "long", weights="last", step=10)
    assert then.step == 10
    ours, theirs = folded_state(short.energy), folded_state(then.energy)
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    assert then.buffer is None  # only the last two checkpoints keep it
    assert load(tmp_path / "long").step == 30
    with pytest.raises(InputError, match=r"no checkpoint 11\. Available: 0, 10, 20, 30"):
        load(tmp_path / "long", step=11)


def test_where_chains_start(train, tmp_path, digits):
    run = train("image").run()
    noise = run.sample(50, steps=0)
    assert noise.abs().max() <= 1
    assert noise.var() == pytest.approx(1 / 3, rel=0.1)
    held_out = digits.batch(torch.arange(len(digits.test)), "test").flatten(1)
    data = run.sample(20, steps=0, start="data").flatten(1)
    assert (data[:, None] == held_out[None]).all(2).any(1).all()
    buffer = run.sample(20, steps=0, start="buffer").flatten(1)
    assert (buffer[:, None] == run.buffer.flatten(1)[None]).all(2).any(1).all()
    assert torch.equal(load(tmp_path / "run").buffer, run.buffer)
    with pytest.raises(InputError, match="start must be noise, buffer or data, got 'nose'"):
        run.sample(2, start="nose")


def test_vectors_start_from_the_fitted_normal_law(train, points):
    run = train("vector").run()
    x = points.batch(torch.arange(len(points.train)))
    starts = run.sample(4000, steps=0)
    torch.testing.assert_close(starts.mean(0), x.mean(0), rtol=0, atol=0.07)
    torch.testing.assert_close(starts.std(0), x.std(0), rtol=0.05, atol=0)
    with pytest.raises(InputError, match="cannot load the data, which were in memory"):
        run.sample(2, start="data")


def test_where_there_is_no_buffer_none_can_start(train):
    with pytest.raises(InputError, match="no buffer of chains"):
        train("nce").run().sample(2, start="buffer")


def test_samples_of_a_normal_law_without_a_kernel_of_its_own():
    law = Gaussian(torch.tensor([3.0, -1.0]), torch.tensor([0.5, 2.0]))
    x = run_of(law, [0.0, 0.0], [1.0, 1.0], MALA(steps=20)).sample(3000)
    assert ((x.mean(0) - law.mean) / law.std).abs().max() < 5 / math.sqrt(3000)
    assert (x.std(0) / law.std - 1).abs().max() < 5 / math.sqrt(6000)


def test_completion_keeps_what_is_given_and_fills_the_rest_from_the_conditional_law():
    n, given = 3000, torch.tensor([2.5, 77.0])
    run = run_of(Correlated(), [0.0, 0.0], [1.0, 1.0], MALA(steps=10, step_size=0.5))
    x = run.sample(n, given=given, kept=torch.tensor([True, False]))
    assert (x[:, 0] == 2.5).all()
    mean, std = -2 + 2 * RHO * 1.5, 2 * math.sqrt(1 - RHO**2)
    assert float(x[:, 1].mean()) == pytest.approx(mean, abs=5 * std / math.sqrt(n))
    assert float(x[:, 1].std()) == pytest.approx(std, rel=5 / math.sqrt(2 * n))
    other = run.sample(5, given=given, kept=torch.tensor([False, True]))
    assert (other[:, 1] == 77.0).all()


def test_completion_keeps_pixels_exactly(train, digits):
    run = train("image").run()
    given = digits.batch(torch.arange(7), "test")
    kept = torch.rand(1, 8, 8, generator=torch.Generator().manual_seed(0)) < 0.5
    x = run.sample(7, given=given, kept=kept)
    assert torch.equal(x[:, kept], given[:, kept])
    assert not torch.equal(x[:, ~kept], given[:, ~kept])
    assert torch.equal(run.sample(7, given=given, kept=torch.ones(8, 8, dtype=torch.bool)), given)


def test_completion_needs_both_parts_and_shapes_that_fit(train):
    run = train("image").run()
    given, kept = torch.zeros(3, 1, 8, 8), torch.ones(1, 8, 8, dtype=torch.bool)
    with pytest.raises(InputError, match="needs both"):
        run.sample(3, given=given)
    with pytest.raises(InputError, match="needs both"):
        run.sample(3, kept=kept)
    with pytest.raises(InputError, match=r"given has shape \(3, 1, 8, 8\), which does not fit \(4, 1, 8, 8\)"):
        run.sample(4, given=given, kept=kept)
    with pytest.raises(InputError, match="kept has shape"):
        run.sample(3, given=given, kept=torch.ones(9, dtype=torch.bool))


def test_broken_checkpoints_are_bad_input(train, tmp_path):
    train("image")
    last = tmp_path / "run" / "checkpoints" / "00000020"
    average = last / "average.safetensors"
    whole = average.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"not tensors at all", whole[:8] + b"\xff" * 20):
        average.write_bytes(content)
        with pytest.raises(InputError, match=r"cannot read .*average\.safetensors"):
            load(tmp_path / "run")
    average.write_bytes((last / "optimizer.safetensors").read_bytes())
    with pytest.raises(InputError, match=r"average\.safetensors is damaged: it does not match its checksum"):
        load(tmp_path / "run")
    average.write_bytes(whole)
    for content in ("", "[]", "{}", '{"step": 3}'):
        (last / "state.json").write_text(content)
        with pytest.raises(InputError, match=r"state\.json"):
            load(tmp_path / "run")


def test_weights_of_another_net_do_not_fit(train, tmp_path):
    train("image")
    with pytest.raises(InputError, match=r"does not fit the MLP: .*size mismatch"):
        load(tmp_path / "run", energy=adance.MLP((1, 8, 8), hidden=[17]))


def test_a_config_that_names_what_is_no_energy_is_refused_and_not_called(train, tmp_path):
    train("image")
    path, trap = tmp_path / "run" / "config.yaml", tmp_path / "trap"
    text = path.read_text()
    for callee in ("os.mkdir", "pathlib.Path", "adance.objectives.NCE.__init__", "nowhere.Net", "os", "5"):
        config = text.replace("adance.MLP", callee).replace("hidden:", f"path: {trap}\n    hidden:")
        path.write_text(config)
        with pytest.raises(InputError):
            load(tmp_path / "run")
        assert not trap.exists()


def test_devices_that_there_are_not_are_refused(train, tmp_path):
    train("image")
    for device in ("abacus", "cuda:99"):
        with pytest.raises(InputError, match=device):
            load(tmp_path / "run", device=device)


def test_a_density_is_claimed_where_log_z_was_learned_alone(train):
    assert train("image", "a").run().log_density(torch.zeros(3)) is None
    assert train("vector", "b").run().log_density(torch.zeros(3)) is None
    run = train("nce", "c", steps=50).run()
    energies = torch.tensor([0.0, 1.0])
    wanted = -energies - run.log_normalizer - sum(math.log(s) for s in run.transform.std)
    torch.testing.assert_close(run.log_density(energies), wanted)


def test_a_run_does_not_change_when_training_goes_on(train):
    trainer = train("image")
    run = trainer.run()
    before = run.buffer.clone()
    for step in range(21, 80):
        trainer._optimize(step)
    assert not torch.equal(trainer.run().buffer, before)
    assert torch.equal(run.buffer, before)


def test_rows_of_any_floating_point_type_are_scored(train, points):
    run = train("vector").run()
    x = points.batch(torch.arange(20))
    assert torch.equal(run.score(x.double()), run.score(x))


def test_sampling_and_loading_work_in_inference_mode(train, tmp_path):
    train("vector")
    expected = load(tmp_path / "run").sample(5, steps=3)
    with torch.inference_mode():
        assert torch.equal(load(tmp_path / "run").sample(5, steps=3), expected)
        starts = torch.zeros(5, 3)
        assert adance.run_chains(MALA(steps=3), lambda x: x.square().sum(1), starts).x.shape == (5, 3)
        assert torch.is_inference_mode_enabled()


@pytest.mark.parametrize(("stored", "says"), [(True, "has spectral .* does not"), (False, "has no spectral .* does")])
def test_spectral_normalization_of_only_one_of_run_and_energy_is_named(stored, says, tmp_path):
    save_tensors(adance.MLP((3,), [4], spectral_norm=stored).state_dict(), tmp_path / "energy.safetensors")
    with pytest.raises(InputError, match=rf"{says}: set spectral_norm={stored}"):
        load_weights(adance.MLP((3,), [4], spectral_norm=not stored), tmp_path / "energy.safetensors")
