import json

import numpy as np
import pytest
import torch

from adance.contrasts import Logistic
from adance.data import load_data
from adance.energies import MLP, Uniform
from adance.errors import InputError
from adance.noises import FixedNoise
from adance.objectives import NCE, Contrastive
from adance.registry import trust
from adance.training import Settings, Trainer, load
from adance.training.run_folder import RunFolder

FILES = {f"{name}.safetensors" for name in ("energy", "average", "objective", "optimizer", "random")}
FULL = {
    "schedule": "constant",
    "grad_clip": 0.5,
    "data_noise": 0.03,
    "ema": 0.99,
    "log_every": 10,
    "checkpoint_every": 1000,
}


def metrics(folder):
    rows = RunFolder(folder).read_metrics()
    for row in rows:
        del row["seconds"]
    return rows


@pytest.mark.parametrize("kind", ["image", "vector", "nce"])
def test_a_run_that_stopped_and_went_on_equals_one_that_did_not(kind, train, points, tmp_path, tensor_bytes):
    train(kind, "whole", steps=200, **FULL)
    train(kind, "parts", steps=77, **FULL)
    data = None if kind == "image" else points
    trainer = Trainer.resume(tmp_path / "parts", data, steps=200, device="cpu", show_progress=False)
    assert trainer.step == 77
    trainer.fit()

    whole, resumed = tensor_bytes(tmp_path / "whole"), tensor_bytes(tmp_path / "parts")
    assert set(whole) == FILES
    assert [name for name in whole if whole[name] != resumed[name]] == []
    # the run of 77 steps logged its last one
    assert metrics(tmp_path / "whole") == [row for row in metrics(tmp_path / "parts") if row["step"] != 77]
    assert load(tmp_path / "whole").log_normalizer == load(tmp_path / "parts").log_normalizer
    if kind == "nce":
        assert load(tmp_path / "whole").log_normalizer not in (None, 0.0)


@pytest.mark.xdist_group("compiled chains")
@pytest.mark.parametrize("chain_dtype", ["float32", "bfloat16"])
def test_a_run_of_compiled_chains_goes_on_exactly(chain_dtype, train, tmp_path, tensor_bytes):
    settings = {"compile": "on", "chain_dtype": chain_dtype}
    whole = train("image", "whole", steps=60, **settings)
    train("image", "parts", steps=27, **settings)
    Trainer.resume(tmp_path / "parts", steps=60, device="cpu", show_progress=False).fit()
    assert whole.objective.noise.chains.options.compile
    assert tensor_bytes(tmp_path / "whole") == tensor_bytes(tmp_path / "parts")


def test_a_run_whose_rate_falls_with_the_step_alone_can_be_made_longer(train, tmp_path, tensor_bytes):
    falling = {"schedule": "inverse", "decay_after": 10}
    train("image", "whole", steps=40, **falling)
    train("image", "parts", steps=25, **falling)
    Trainer.resume(tmp_path / "parts", steps=40, show_progress=False).fit()
    assert tensor_bytes(tmp_path / "whole") == tensor_bytes(tmp_path / "parts")


def test_the_adapted_step_size_of_chains_goes_on(train, points, tmp_path):
    trainer = train("vector", steps=60)
    chains = trainer.objective.noise.chains
    adapted = chains._step_size
    assert float(adapted) != chains.kernel.step_size
    resumed = Trainer.resume(tmp_path / "run", points, steps=70, show_progress=False)
    assert torch.equal(resumed.objective.noise.chains._step_size, adapted)


def test_resuming_a_finished_run_changes_nothing(train, tmp_path):
    train("image")
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file() and p.suffix != ".png"}
    run = Trainer.resume(tmp_path / "run", show_progress=False).fit()
    assert run.step == 20
    assert {p: p.read_bytes() for p in before} == before


def test_fewer_steps_than_were_taken_are_refused(train, tmp_path):
    train("image")
    with pytest.raises(InputError, match="already has 20 steps"):
        Trainer.resume(tmp_path / "run", steps=10)


def test_lines_after_the_checkpoint_and_a_last_line_that_was_cut_are_dropped(train, tmp_path):
    train("image", steps=20, log_every=5, checkpoint_every=10)
    path = tmp_path / "run" / "metrics.jsonl"
    whole = path.read_text()
    with path.open("a") as file:
        file.write(json.dumps({"step": 25, "loss": 0.5}) + '\n{"step": 30, "lo')
    Trainer.resume(tmp_path / "run", steps=30, show_progress=False)
    assert path.read_text() == whole


def test_what_a_killed_run_left_half_written_is_removed(train, tmp_path):
    train("image")
    run = tmp_path / "run"
    before = sorted(run.rglob("*"))
    (run / "checkpoints" / ".00000030.part").mkdir()
    for name in ("checkpoints/.00000030.part/energy.safetensors", ".metrics.jsonl.7.part", "samples/.x.png.7.part"):
        (run / name).write_text("half")
    Trainer.resume(run, show_progress=False)
    assert sorted(run.rglob("*")) == before


def test_only_the_last_two_checkpoints_are_kept_in_full(train, tmp_path):
    train("image", steps=40, checkpoint_every=10)
    files = {p.name: {f.name for f in p.iterdir()} for p in (tmp_path / "run" / "checkpoints").iterdir()}
    assert sorted(files) == ["00000000", "00000010", "00000020", "00000030", "00000040"]
    for name in ("00000030", "00000040"):
        assert files[name] == FILES | {"state.json"}
    for name in ("00000000", "00000010", "00000020"):
        assert files[name] == {"energy.safetensors", "average.safetensors", "state.json"}


def test_where_the_last_checkpoint_is_not_full_the_one_before_serves(train, tmp_path):
    train("image", steps=40, checkpoint_every=10)
    (tmp_path / "run" / "checkpoints" / "00000040" / "optimizer.safetensors").unlink()
    assert Trainer.resume(tmp_path / "run", show_progress=False).step == 30


def test_random_numbers_go_on_from_a_new_seed_on_another_kind_of_device(train, tmp_path):
    """A generator's state has another size on another kind of device."""
    from adance.training.checkpoint import save_tensors

    train("image")
    path = tmp_path / "run" / "checkpoints" / "00000020" / "random.safetensors"
    save_tensors({"generator": torch.zeros(16, dtype=torch.uint8)}, path)
    state = json.loads((path.parent / "state.json").read_text())
    kept = {name: value for name, value in state.items() if name not in ("crc32", "checksums")}
    (path.parent / "state.json").write_text(json.dumps(kept))
    with pytest.warns(UserWarning, match="another type of device"):
        trainer = Trainer.resume(tmp_path / "run", steps=25, show_progress=False)
    assert trainer.fit().step == 25


def test_a_run_with_batch_norm_that_was_insisted_on_resumes(tmp_path, points):
    class Normed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))

        def forward(self, x):
            return self.net(x).squeeze(1)

    from adance import remember

    def normed():
        torch.manual_seed(0)
        return Normed()

    with pytest.raises(InputError, match=r"net\.1: BatchNorm1d"):
        Trainer(normed(), NCE(), points, out=tmp_path / "run")
    energy = normed()
    remember(energy, {})
    settings = Settings(steps=5, batch_size=16)
    Trainer(energy, NCE(), points, settings, tmp_path / "run", allow_batch_norm=True, show_progress=False).fit()
    trainer = Trainer.resume(tmp_path / "run", points, normed(), steps=8, show_progress=False)
    assert trainer.fit().step == 8


def test_the_data_are_needed_where_the_config_does_not_say_how_to_load_them(train, tmp_path):
    train("nce")
    with pytest.raises(InputError, match="cannot load the data, which were in memory"):
        Trainer.resume(tmp_path / "run")


def test_the_split_of_a_file_is_the_same_when_resuming(tmp_path, points, tensor_bytes):
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{a},{b},{c}\n" for a, b, c in points.train.tolist()))
    for name, stops in (("whole", [30]), ("parts", [11, 30])):
        data = load_data(path, seed=3, held_out=0.2)
        torch.manual_seed(2)
        settings = Settings(steps=stops[0], batch_size=16)
        Trainer(MLP((3,), [8]), NCE(), data, settings, tmp_path / name, show_progress=False).fit()
        for steps in stops[1:]:
            Trainer.resume(tmp_path / name, steps=steps, show_progress=False).fit()
    assert tensor_bytes(tmp_path / "whole") == tensor_bytes(tmp_path / "parts")


def test_data_that_changed_are_refused(tmp_path):
    rows, path = torch.randn(60, 2, generator=torch.Generator().manual_seed(0)), tmp_path / "rows.npy"
    np.save(path, rows.numpy())
    settings = Settings(steps=2, batch_size=8)
    Trainer(MLP((2,), (4,)), NCE(), load_data(path), settings, tmp_path / "run", show_progress=False).fit()
    np.save(path, 50 * rows.numpy() + 7)
    with pytest.raises(InputError, match="have changed since training"):
        Trainer.resume(tmp_path / "run", steps=4)


class UniformPixels(FixedNoise):
    def __init__(self, event_shape, low=-1.2, high=1.2):
        super().__init__(Uniform(event_shape, low, high))


def test_a_contrast_and_a_noise_of_ones_choice_resume(tmp_path):
    trust(__name__)
    settings = Settings(steps=2, batch_size=8, sample_every=0)
    objective = Contrastive(Logistic(2), UniformPixels((1, 8, 8)))
    Trainer(MLP((1, 8, 8), (4,)), objective, load_data("digits"), settings, tmp_path / "run", show_progress=False).fit()
    resumed = Trainer.resume(tmp_path / "run", steps=3, show_progress=False)
    assert resumed.objective.contrast.noises == 2
    assert resumed.fit().step == 3
