"""Bad input ends with status 2 and one line that names what was wrong; nothing is written and nothing changes."""

import os
import zipfile

import numpy as np
import pytest
import torch

NETS = '''
import torch
from torch import nn


class Column(nn.Module):
    """Returns (B, 1)."""

    def __init__(self, event_shape):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x)


class Normed(Column):
    def __init__(self, event_shape):
        super().__init__(event_shape)
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.BatchNorm1d(4), nn.Linear(4, 1), nn.Flatten(0))


class Color(Column):
    def __init__(self, event_shape):
        super().__init__(event_shape)
        self.net = nn.Sequential(nn.Conv2d(3, 2, 8), nn.Flatten(), nn.Linear(2, 1), nn.Flatten(0))


class Whole(Column):
    def forward(self, x):
        return self.net(x).mean()


class Picky(Column):
    def __init__(self, event_shape):
        raise RuntimeError("only squares")


def function(event_shape):
    raise AssertionError("must not be called")
'''


@pytest.fixture
def nets(tmp_path, monkeypatch):
    (tmp_path / "odd_nets.py").write_text(NETS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)


TRAIN = [
    ("--data nope", "data source 'nope': neither a known name nor a readable path; use a name (digits,"),
    ("--data nope.csv", "'nope.csv': no such file"),
    ("--objective Nope", "--objective: no objective is called 'Nope'; give one of ACE, BRM,"),
    ("--objective AdaNEC", "no objective is called 'AdaNEC' (did you mean AdaNCE?); give one of"),
    ("--objective adance", "(did you mean AdaNCE?)"),
    ("--data mooons", "neither a known name nor a readable path (did you mean moons?); use a name (digits,"),
    ("--objective odd_nets.Nope", "--objective: cannot find the class 'odd_nets.Nope': module 'odd_nets' has no"),
    ("--objective MLP", "--objective: MLP of adance.energies is not an objective that can be constructed"),
    ("--energy ConvNte", "no energy is called 'ConvNte' (did you mean ConvNet?)"),
    ("--energy Nope", "--energy: no energy is called 'Nope'"),
    ("--energy odd_nets.Nope", "--energy: cannot find the class 'odd_nets.Nope'"),
    ("--energy odd_nets.function", "--energy: odd_nets.function is not an energy"),
    ("--energy os.system", "--energy: os.system is not an energy"),
    ("--stpes 7", "unrecognized arguments: --stpes"),
    ("--step 7", "unrecognized arguments: --step"),
    ("--energy.hiden [3]", "'hiden' is not accepted (did you mean hidden?); MLP takes hidden, activation,"),
    ("--objective.intervall 3", "'intervall' is not accepted (did you mean interval?); AdaNCE takes sampler, interval"),
    ("--objective.qqq 3", "'qqq' is not accepted; AdaNCE takes sampler, interval"),
    ("--objective.sampler.stepz 3", "'stepz' is not accepted (did you mean steps?); Langevin takes steps, step_size,"),
    ("--objective.noise.noises 3", "'noise.noises' is not accepted"),
    ("--objective NCE --objective.noise.components 3", "--objective.noise.components: choose a class first, with"),
    (
        "--objective NCE --objective.noise gausian",
        "no noise or density is called 'gausian' (did you mean gaussian?); give one of",
    ),
    ("--energy.hidden", "--energy.hidden: the value is missing, as in --energy.hidden=VALUE"),
    ("--trust", "'' is not the name of a module"),
    ("--trust ./odd_nets.py", "'./odd_nets.py' is not the name of a module: give one such as mymodule"),
    ("--objective.sampler Langvin", "--objective.sampler: no kernel is called 'Langvin' (did you mean Langevin?)"),
    ("surplus", "unrecognized arguments: surplus"),
    ("--steps many", "--steps: expected a whole number; got 'many'"),
    ("--steps 1.5", "--steps: expected a whole number; got '1.5'"),
    ("--objective.interval Auto", "--objective.interval: expected a whole number or 'auto' or null; got 'Auto'"),
    ("--compile maybe", "--compile: expected one of 'auto', 'on', 'off' or true or false; got 'maybe'"),
    ("--compile=", "--compile: expected one of 'auto', 'on', 'off' or true or false; got ''"),
    ("--lr fast", "--lr: expected a number; got 'fast'"),
    ("--flip 3", "--flip: expected true or false; got '3'"),
    ("--energy.hidden wide", "--energy.hidden: expected a list in brackets, [a whole number, …]; got 'wide'"),
    (
        "--energy.activation tanh",
        "--energy.activation: expected one of 'leaky_relu', 'relu', 'silu', 'softplus' or null; got",
    ),
    ("--steps -1", "steps must be 0 or more, got -1"),
    ("--batch_size 0", "batch_size must be more than 0, got 0"),
    ("--lr 0", "lr must be more than 0, got 0.0"),
    ("--betas [0.5]", "--betas: expected a list in brackets, [a number, a number]; got '[0.5]'"),
    ("--betas [0.5,1]", "betas must be two numbers in [0, 1)"),
    ("--schedule stairs", "--schedule: expected one of 'inverse', 'constant', 'linear', 'cosine'"),
    ("--decay_after 0", "decay_after must be more than 0, got 0"),
    ("--warmup -1", "warmup must be 0 or more"),
    ("--grad_clip 0", "grad_clip must be more than 0, or none"),
    ("--ema 1", "ema must be in [0, 1)"),
    ("--data_noise -1", "data_noise must be 0 or more"),
    ("--energy_limit 0", "energy_limit must be more than 0"),
    ("--seed -1", "seed must be 0 or more"),
    ("--seed 99999999999999999999", "seed must be less than 2**32"),
    ("--log_every 0", "log_every must be more than 0"),
    ("--sample_every -1", "sample_every must be 0 or more"),
    ("--checkpoint_every 0", "checkpoint_every must be more than 0"),
    ("--data_seed -1", "the data's seed must be 0 or more and less than 2**63, got -1"),
    ("--data_seed 99999999999999999999", "the data's seed must be 0 or more and less than 2**63"),
    ("--objective.interval 0", "interval must be a number of optimizer steps, at least 1, or 'auto', got 0"),
    ("--objective.sampler.step_size -1", "step_size > 0"),
    ("--objective.rejuvenation 2", "rejuvenation must be at most 1, got 2"),
    ("--objective.buffer 0", "buffer must be a whole number of at least 1, got 0"),
    ("--objective.buffer 99999999999999999999", "buffer must be a whole number of at least 1"),
    ("--objective.ratio_temperature 1e400", "ratio_temperature must be a finite number of at least 0, got inf"),
    ("--lr 1e400", "lr must be finite, got inf"),
    ("--data=", "--out and --data must not be empty"),
    ("--energy.hidden [0]", "hidden must be widths, each at least 1, got [0]"),
    ("--objective.pool 33", "a buffer of 32 is smaller than the 33 chains that run at a time"),
    ("--objective.pool 8", "pool=8 is smaller than the 16 noise samples of a batch: use at least 16"),
    (
        "--batch_size 1401 --objective.pool 0 --objective.buffer 2000",
        "1400 training rows, fewer than one batch of 1401",
    ),
    ("--data moons --flip true", "flip is for images; moons has vectors"),
    ("--image_size 4", "image_size applies to a folder of images or a hub set"),
    ("--device abacus", "device 'abacus' cannot be used"),
    ("--device cpu:1", "train on 'cpu' or 'cuda', got 'cpu:1'"),
    ("--trackers [abacus]", "tracker 'abacus' is not installed"),
    ("--config nope.yaml", "--config: cannot read nope.yaml: No such file or directory"),
    ("--resume nope", "cannot change when resuming"),
]


@pytest.mark.parametrize(("argv", "message"), TRAIN, ids=[argv for argv, _ in TRAIN])
def test_train(argv, message, tiny, nets, bytes_under):
    before = bytes_under()
    answer = tiny("run", *argv.split())
    assert answer.status == 2
    assert answer.error.startswith("adance train: error: ")
    assert message in answer.error
    assert bytes_under() == before


def test_chains_that_drown_the_data_are_warned_about(adance):
    options = "--objective.sampler Langevin --objective.sampler.steps 1 --steps 1 --batch_size 16 --quiet"
    answer = adance("train", "--data", "digits", *options.split())
    assert answer.status == 0
    assert "every step of Langevin adds noise of 1.41 to data whose standard deviation is 0.75" in answer.error


def test_a_config_that_is_no_text(tiny, tmp_path, bytes_under):
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    before = bytes_under()
    answer = tiny("run", "--config", "binary.yaml")
    assert answer.status == 2
    assert "should be text in UTF-8" in answer.error
    assert bytes_under() == before


@pytest.mark.parametrize(
    ("energy", "message"),
    [
        ("odd_nets.Column", "the energy returned shape (2, 1) for 2 events; it must return shape (2,)"),
        ("odd_nets.Normed", "the energy has batch normalization (net.2: BatchNorm1d)"),
        ("odd_nets.Picky", "--energy: cannot be constructed for events of shape (1, 8, 8): only squares"),
        ("torch.nn.Flatten", "the energy does not accept events of shape (1, 8, 8) of digits"),
        ("odd_nets.Whole", "the energy returned shape () for 2 events"),
    ],
)
def test_energies_that_are_none(energy, message, adance, nets, bytes_under):
    before = bytes_under()
    answer = adance("train", "--energy", energy, "--out", "run", "--device", "cpu")
    assert answer.status == 2
    assert message in answer.error
    assert bytes_under() == before


def test_one_channel_and_three_are_both_named(adance, nets, bytes_under):
    before = bytes_under()
    answer = adance("train", "--energy", "odd_nets.Color", "--out", "run", "--device", "cpu")
    assert answer.status == 2
    assert "events of shape (1, 8, 8) of digits" in answer.error
    assert "3 channels" in answer.error
    assert bytes_under() == before
    answer = adance("train", "--energy", "ConvNet", "--energy.architecture", "B", "--out", "run", "--device", "cpu")
    assert answer.status == 2
    assert "events of shape (1, 8, 8) do not fit architecture 'B'" in answer.error
    assert "B for 3×32×32" in answer.error


def test_batch_norm_that_is_insisted_on_trains_and_resumes(adance, nets):
    options = "--energy odd_nets.Normed --objective.sampler Langevin --objective.sampler.steps 2 --objective.pool 16"
    numbers = "--objective.buffer 32 --steps 3 --batch_size 16 --device cpu --quiet --allow_batch_norm true"
    assert adance("train", *options.split(), *numbers.split(), "--out", "run").status == 0
    trusting = ("--trust", "odd_nets")
    assert adance("train", "--resume", "run", "--steps", "5", "--quiet", *trusting).status == 0
    assert adance("sample", "run", "--n", "2", "--steps", "1", "--out", "x.npz", *trusting).status == 0


def test_a_folder_with_a_run_is_refused_and_nothing_in_it_changes(tiny, bytes_under):
    assert tiny("run").status == 0
    before = bytes_under()
    answer = tiny("run", "--seed", 4)
    assert answer == (2, "", "adance train: error: run already holds a run; resume it, or choose another folder\n")
    assert bytes_under() == before


def test_checkpoints_without_their_config(tiny, tmp_path, bytes_under):
    assert tiny("run").status == 0
    (tmp_path / "run" / "config.yaml").unlink()
    before = bytes_under()
    answer = tiny("run")
    assert answer.status == 2
    assert "run holds checkpoints, but no config.yaml; choose another folder" in answer.error
    assert bytes_under() == before


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 3 TiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate memory: 3 bytes"),
        torch.OutOfMemoryError("CUDA out of memory."),
    ],
)
def test_too_much_at_once(error, adance, trained_run, monkeypatch):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("adance.training.run.Run.sample", fail)
    answer = adance("sample", "run")
    assert answer.status == 2
    assert answer.error.startswith("adance sample: error: not enough memory: ")
    monkeypatch.setattr("adance.training.run.Run.sample", lambda *args, **kwargs: torch.zeros(2) @ torch.zeros(3))
    with pytest.raises(RuntimeError, match="inconsistent tensor size"):  # a fault of ours keeps its traceback
        adance("sample", "run")


def test_a_file_where_the_run_should_go(tiny, tmp_path, bytes_under):
    (tmp_path / "file").write_text("x")
    before = bytes_under()
    assert "file is a file; choose a folder" in tiny("file").error
    assert "cannot write the run folder file/run" in tiny("file/run").error
    assert bytes_under() == before


def test_sample(adance, trained_run, rows, tmp_path, bytes_under):
    options = "--energy MLP --energy.hidden [4] --objective NCE --steps 2 --batch_size 16 --device cpu --quiet"
    assert adance("train", "--data", "rows.csv", *options.split(), "--out", "space").status == 0
    np.save(tmp_path / "mask.npy", np.ones((7, 8)))
    np.savez(tmp_path / "none.npz")
    (tmp_path / "text.npy").write_text("left")
    (tmp_path / "empty.npy").write_text("")
    with zipfile.ZipFile(tmp_path / "broken.npz", "w") as file:
        file.writestr("a.npy", "nonsense")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "broken.npz").read_bytes()[:-20])
    before = bytes_under()
    for argv, message in [
        ("nope", "nope is not a run folder"),
        ("run --out x.jpg", "--out x.jpg: samples are written as .png, .npz or .csv"),
        ("run --out x", "samples are written as .png, .npz or .csv"),
        ("space --out x.png", "events of shape (3,) have no picture; use --out FILE.csv or FILE.npz"),
        ("run --out x.csv", "--out x.csv: images are written as .png or .npz"),
        ("run --out mask.npy/x.npz", "cannot write mask.npy/x.npz"),
        ("run --n 0", "n must be at least 1 and less than 2**31, got 0"),
        (
            "run --n 99999999999999999999",
            "n must be at least 1 and less than 2**31, got 99999999999999999999",
        ),
        ("run --n 99999999999999999999 --mask left", "less than 2**31, got 99999999999999999999"),
        ("run --seed 99999999999999999999", "seed must be 0 or more and less than 2**63, got 99999999999999999999"),
        ("run --seed -1", "seed must be 0 or more"),
        ("run --out run.npz/../run/.png/", "samples are written as .png, .npz or .csv"),
        ("run --n some", "--n: "),
        ("run --steps -1", "steps=-1 is negative: use 0 or more"),
        ("run --start nose", "--start: expected one of 'noise', 'buffer', 'data'"),
        ("space --out x.npz --start buffer", "space has no buffer of chains to start from"),
        ("run --step 5", "run has no checkpoint 5. Available: 0, 3, 6"),
        ("run --weights best", "--weights: expected one of 'average', 'last'"),
        ("run --mask middle", "--mask middle: give left, right, top, bottom, or an .npy or .npz array"),
        ("run --mask middle", "that fits events of shape (1, 8, 8) (No such file or directory)"),
        ("run --mask mask.npy", "that fits events of shape (1, 8, 8)"),
        ("run --mask none.npz", "--mask none.npz: give left"),
        ("run --mask text.npy", "--mask text.npy: give left"),
        ("run --mask empty.npy", "--mask empty.npy: give left"),
        ("run --mask broken.npz", "--mask broken.npz: give left"),
        ("run --mask cut.npz", "--mask cut.npz: give left"),
        ("space --out x.npz --mask left", "--mask left is for images; for vectors give an array of shape (3,)"),
        ("run --given digits", "--given needs --mask"),
        ("run --mask left --given moons", "events have shape (2,), but the model was trained on (1, 8, 8)"),
        ("run --device abacus", "device 'abacus' cannot be used"),
        ("run --device cuda:99", "device 'cuda:99' cannot be used"),
    ]:
        answer = adance("sample", *argv.split())
        assert answer.status == 2, argv
        assert answer.error.startswith("adance sample: error: ")
        assert message in answer.error
        assert bytes_under() == before


def test_score(adance, trained_run, rows, tmp_path, bytes_under):
    os.mkfifo(tmp_path / "pipe")
    before = bytes_under()
    for argv, message in [
        ("nope digits", "nope is not a run folder"),
        ("run", "required: data"),
        ("run nope", "data source 'nope'"),
        ("run rows.csv", "rows.csv: events have shape (3,), but the model was trained on (1, 8, 8)"),
        ("run digits --out rows.csv/x.csv", "cannot write rows.csv/x.csv"),
        ("run digits --out .", "cannot write .: is a folder"),
        ("run digits --out run", "cannot write run: is a folder"),
        ("run digits --out pipe", "cannot write pipe: is not a regular file"),
        ("run digits --out ..", "cannot write ..: is a folder"),
        ("run digits --step 4", "run has no checkpoint 4"),
        ("run digits --device abacus", "device 'abacus' cannot be used"),
    ]:
        answer = adance("score", *argv.split())
        assert answer.status == 2, argv
        assert answer.error.startswith("adance score: error: ")
        assert message in answer.error
        assert bytes_under() == before
