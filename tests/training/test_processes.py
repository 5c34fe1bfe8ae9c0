"""Runs of two processes: resuming them, stopping them, and what they write."""

import json
import os
import signal
import time
import warnings

import pytest
import torch
from ranks import finish, start, together

from adance.data import Dataset, Standardize
from adance.distributed import rank
from adance.energies import MLP, Gaussian
from adance.errors import DivergedError, InputError
from adance.noises import FixedNoise
from adance.objectives import NCE, AdaNCE
from adance.samplers import MALA, Langevin
from adance.training import Settings, Trainer, load
from adance.training.checkpoint import read_state
from adance.training.checksums import with_checksum
from adance.training.rank_state import own_names
from adance.training.run_folder import RunFolder

pytestmark = pytest.mark.xdist_group("ranks")

SETTINGS = {"batch_size": 8, "log_every": 4, "checkpoint_every": 6, "data_noise": 0.1, "ema": 0.99}


class BadOnce(Gaussian):
    """Its samples are infinite in the second process, at the fifth call in training."""

    calls = 0

    def sample(self, n, generator=None):
        self.calls += 1
        x = super().sample(n, generator)
        return x * torch.inf if rank() == 1 and self.calls == 6 else x


class Recorded(Gaussian):
    """Its samples are a function of the call, and each process takes its part."""

    calls = 0

    def sample(self, n, generator=None):
        self.calls += 1
        x = 2 * torch.randn(1000, 3, generator=torch.Generator().manual_seed(self.calls))
        return x[rank() * n :][:n]


OBJECTIVES = {
    "recorded": NCE(FixedNoise(Recorded(torch.zeros(3), torch.full((3,), 2.0)))),
    "rejuvenated": AdaNCE(
        Langevin(steps=2, step_size=0.1, temperature=0.05),
        interval=5,
        pool=16,
        buffer=32,
        rejuvenation=0.1,
        ratio_temperature="auto",
    ),
    "reweighted": AdaNCE(MALA(steps=2, step_size=0.02), interval="auto", start="reweighted", pool=16, buffer=64),
    "bad": NCE(FixedNoise(BadOnce(torch.zeros(3), torch.ones(3)))),
}


def points():
    """Points in space, of which no picture is drawn."""
    rows = torch.randn(300, 3, generator=torch.Generator().manual_seed(5))
    return Dataset("points", "vector", rows[:250], rows[250:], Standardize.fit(rows[:250]))


def trainer(kind, folder, steps, **settings):
    torch.manual_seed(rank())  # so that only the first process has the weights that count
    energy, numbers = MLP((3,), [8], spectral_norm=True), Settings(steps=steps, **{**SETTINGS, **settings})
    return Trainer(energy, OBJECTIVES[kind], points(), numbers, folder, device="cpu", show_progress=False)


def train(kind, folder, steps, rows=8):
    made = trainer(kind, folder, steps, batch_size=rows, data_noise=0.0 if kind == "recorded" else 0.1, grad_clip=0.5)
    made.fit()
    return state_of(made)


def resume(folder, steps):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = Trainer.resume(folder, points(), steps=steps, device="cpu", show_progress=False)
    assert made.accelerator.num_processes == 2
    made.fit()
    return state_of(made) | {"warnings": [str(warning.message) for warning in caught]}


def state_of(made):
    state = {name: value.clone() for name, value in made.objective.state_dict().items()}
    own = set(own_names(made.objective))
    return {
        "own": {name: value for name, value in state.items() if name in own},
        "shared": {name: value for name, value in state.items() if name not in own},
        "weights": {name: value.clone() for name, value in made.energy.state_dict().items()},
        "temperature": made.objective.temperature,
        "generator": made.generator.get_state(),
        "step": made.step,
    }


def assert_equal(a, b):
    assert [name for name in a if not torch.equal(a[name].nan_to_num(), b[name].nan_to_num())] == []


@pytest.mark.parametrize("kind", ["rejuvenated", pytest.param("reweighted", marks=pytest.mark.hardening)])
def test_a_run_of_two_processes_resumes_exactly(kind, tmp_path, tensor_bytes):
    whole = together(train, kind, tmp_path / "whole", 20, folder=tmp_path)
    together(train, kind, tmp_path / "parts", 7, folder=tmp_path)
    parts = together(resume, tmp_path / "parts", 20, folder=tmp_path)
    for one, other in zip(whole, parts, strict=True):
        assert other["warnings"] == []
        assert one["step"] == other["step"] == 20
        assert one["temperature"] == other["temperature"]
        assert torch.equal(one["generator"], other["generator"])
        for part in ("own", "shared", "weights"):
            assert_equal(one[part], other[part])
    written = tensor_bytes(tmp_path / "whole")
    assert "ranks.safetensors" in written
    assert written == tensor_bytes(tmp_path / "parts")
    # each process has chains of its own, and all else in common
    first, second = whole
    assert_equal(first["shared"], second["shared"])
    assert_equal(first["weights"], second["weights"])
    assert first["temperature"] == second["temperature"]
    chains = next(name for name in first["own"] if name.endswith("buffer.samples"))
    same = (first["own"][chains][:, None] == second["own"][chains][None]).all(2)
    # reweighted chains are resampled together, so that both can have copies of one chain
    assert not same.any() or kind == "reweighted"
    assert not torch.equal(first["own"][chains], second["own"][chains])


def test_a_run_of_two_processes_equals_one_of_joined_batches(tmp_path):
    two = together(train, "recorded", tmp_path / "two", 20, folder=tmp_path)[0]
    one = train("recorded", tmp_path / "one", 20, 16)
    assert float(two["shared"]["log_ratio.log_z"]) == pytest.approx(float(one["shared"]["log_ratio.log_z"]), abs=1e-4)
    for name, value in one["weights"].items():
        assert (value - two["weights"][name]).abs().max() < 1e-4
    rows = [RunFolder(tmp_path / name).read_metrics() for name in ("one", "two")]
    for a, b in zip(*rows, strict=True):
        assert {**b, "seconds": 0} == pytest.approx({**a, "seconds": 0}, rel=1e-3, abs=1e-4)


def test_a_run_goes_on_in_another_number_of_processes(tmp_path):
    folder = tmp_path / "run"
    before = together(train, "rejuvenated", folder, 7, folder=tmp_path)
    with pytest.warns(UserWarning, match="training continues in 1: the chains are redistributed"):
        made = Trainer.resume(folder, points(), steps=13, device="cpu", show_progress=False)
    name = next(name for name in before[0]["own"] if name.endswith("buffer.samples"))
    dealt, places = made.objective.state_dict()[name], torch.arange(32)
    assert torch.equal(dealt, torch.stack([state["own"][name] for state in before])[places % 2, places])
    made.fit()
    again = together(resume, folder, 20, folder=tmp_path)
    assert [state["step"] for state in again] == [20, 20]
    assert [len(state["warnings"]) for state in again] == [1, 0]
    assert_equal(again[0]["weights"], again[1]["weights"])
    assert not torch.equal(again[0]["generator"], again[1]["generator"])
    assert [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()] == [
        4, 7, 8, 12, 13, 16, 20
    ]  # fmt: skip
    assert [path for path in folder.rglob("*") if path.name.endswith(".part")] == []


def test_a_checkpoint_that_lacks_a_process_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "run"
    together(train, "rejuvenated", folder, 2, folder=tmp_path)
    path = folder / "checkpoints" / "00000002" / "ranks.safetensors"
    kept = {name: value for name, value in load_file(path).items() if not name.endswith("buffer.samples")}
    save_file(kept, path)
    state = read_state(path.parent)
    (path.parent / "state.json").write_text(with_checksum({**state, "checksums": {}}), encoding="utf-8")
    with pytest.raises(InputError, match=r"ranks\.safetensors does not fit the objective"):
        Trainer.resume(folder, points(), device="cpu", show_progress=False)


def train_with_batch_norm(folder):
    energy = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    options = {"device": "cpu", "show_progress": False, "allow_batch_norm": True}
    try:
        Trainer(energy, NCE(), points(), Settings(**SETTINGS), folder, **options)
    except InputError as error:
        return str(error)


def test_batch_normalization_is_refused_in_several_processes(tmp_path):
    said = together(train_with_batch_norm, tmp_path / "run", folder=tmp_path)
    assert said[0] == said[1]
    assert said[0].endswith("use another normalization, or train in one process")
    assert not (tmp_path / "run").exists()


def diverge(folder):
    try:
        train("bad", folder, 20)
    except DivergedError as error:
        return str(error)


def test_a_divergence_of_one_process_stops_both(tmp_path):
    said = together(diverge, tmp_path / "run", folder=tmp_path)
    assert said[0] == said[1]
    assert said[0].startswith("training diverged at step 5:")
    assert said[0].endswith("last good checkpoint: " + str(tmp_path / "run" / "checkpoints" / "00000000"))
    assert load(tmp_path / "run").step == 0


def be_interrupted(folder):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    made = trainer("rejuvenated", folder, 1_000_000, log_every=1, checkpoint_every=1_000_000, compile="off")
    try:
        made.fit()
    except KeyboardInterrupt:
        return made.step


def test_a_signal_to_one_process_stops_both_with_one_checkpoint(tmp_path):
    processes = start(be_interrupted, tmp_path / "run", folder=tmp_path)
    began = time.monotonic()
    while not (tmp_path / "run" / "metrics.jsonl").exists() and time.monotonic() - began < 60:
        time.sleep(0.01)
    os.kill(processes[1].pid, signal.SIGINT)
    first, second = finish(processes, tmp_path)
    assert first == second > 0
    steps = [int(path.name) for path in sorted((tmp_path / "run" / "checkpoints").iterdir())]
    assert steps == [0, first]
    assert together(resume, tmp_path / "run", first + 2, folder=tmp_path)[1]["step"] == first + 2
