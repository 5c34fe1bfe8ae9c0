import csv
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from adance import InputError, load, load_data, trust

OWN = """
from torch import nn


class Own(nn.Module):
    def __init__(self, event_shape, wide: int = 4):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(event_shape[0], wide), nn.SiLU(), nn.Linear(wide, 1))

    def forward(self, x):
        return self.net(x).squeeze(1) + x.square().sum(1) / 2
"""


def weights_of(run):
    last = sorted((run / "checkpoints").iterdir())[-1]
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}


def read_csv(path):
    with path.open(newline="") as file:
        table = list(csv.reader(file))
    return table[0], np.array(table[1:], dtype=float)


def test_train_says_where_the_run_and_its_picture_are(tiny, tmp_path):
    answer = tiny("run")
    assert answer == (0, "run: run\nsamples: run/samples/00000006.png\n", "")
    assert Image.open(tmp_path / "run" / "samples" / "00000006.png").size[1] <= 640


def test_resuming_a_run_that_is_done_says_so(trained_run, adance, tmp_path):
    before = weights_of(tmp_path / "run")
    answer = adance("train", "--resume", "run", "--quiet")
    assert (answer.status, answer.error) == (
        0,
        "adance: warning: already at 6 of 6 steps; --steps N continues training\n",
    )
    assert weights_of(tmp_path / "run") == before
    assert adance("train", "--resume", "run", "--steps", "7", "--quiet").error == ""


def test_train_takes_the_first_free_folder(adance):
    options = "--energy MLP --energy.hidden [4] --objective.sampler Langevin --objective.sampler.steps 1"
    options += " --objective.sampler.noise_std 0.005"
    for number in (1, 2):
        argv = [*options.split(), "--steps", "1", "--ema", "0", "--quiet", "--device", "cpu"]
        answer = adance("train", "--data", "digits", *argv)
        assert answer.out.startswith(f"run: runs/digits-AdaNCE-{number}\n")
        assert answer.out.endswith("weights: last (no moving average)\n")
        assert answer.error == ""


def test_the_config_of_a_run_makes_the_same_run_again(adance, tiny, tmp_path):
    assert tiny("run", "--data_noise", "0.1", "--ema", "0.9", "--grad_clip", "1", "--betas", "[0.5,0.9]").status == 0
    answer = adance("train", "--config", "run/config.yaml", "--out", "other", "--quiet", "--device", "cpu")
    assert answer.status == 0
    assert weights_of(tmp_path / "run") == weights_of(tmp_path / "other")
    assert (tmp_path / "run" / "config.yaml").read_text() == (tmp_path / "other" / "config.yaml").read_text()
    changed = adance("train", "--config", "run/config.yaml", "--seed", "5", "--out", "third", "--quiet")
    assert changed.status == 0
    assert weights_of(tmp_path / "run") != weights_of(tmp_path / "third")


@pytest.mark.parametrize("objective", ["AdaNCE", "NCE"])
def test_the_config_of_a_run_on_a_table_makes_the_same_run_again(objective, adance, rows, tmp_path):
    options = "--energy MLP --energy.hidden [4] --steps 4 --batch_size 16 --held_out 0.25 --data_seed 3 --ema 0"
    argv = [*options.split(), "--objective", objective, "--quiet", "--device", "cpu", "--sample_every", "0"]
    if objective == "AdaNCE":
        argv += ["--objective.sampler", "MALA", "--objective.sampler.steps", "1", "--objective.pool", "16"]
    assert adance("train", "--data", "rows.csv", *argv, "--out", "run").status == 0
    assert adance("train", "--config", "run/config.yaml", "--out", "other", "--quiet").status == 0
    assert weights_of(tmp_path / "run") == weights_of(tmp_path / "other")
    assert load("run").data["n_test"] == 100


def test_a_class_of_ones_own_trains_resumes_and_loads(adance, rows, tmp_path, monkeypatch):
    (tmp_path / "own_net.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    options = "--data rows.csv --energy own_net.Own --energy.wide 6 --objective NCE --batch_size 16 --quiet"
    for out, steps in (("whole", 9), ("parts", 4)):
        assert adance("train", *options.split(), "--steps", steps, "--out", out, "--device", "cpu").status == 0
    assert "--trust own_net" in adance("train", "--resume", "parts", "--steps", "9", "--quiet").error
    assert adance("train", "--resume", "parts", "--steps", "9", "--quiet", "--trust", "own_net").status == 0
    assert weights_of(tmp_path / "whole") == weights_of(tmp_path / "parts")
    with pytest.raises(InputError, match=r'adance\.trust\("own_net"\)'):
        load("whole")
    trust("own_net")
    run = load("whole")
    assert type(run.energy).__name__ == "Own"
    assert run.energy.net[1].out_features == 6
    assert adance("train", "--config", "whole/config.yaml", "--out", "other", "--quiet").status == 0
    assert weights_of(tmp_path / "whole") == weights_of(tmp_path / "other")


def test_a_class_in_the_current_folder_is_found_without_a_path(rows, tmp_path):
    (tmp_path / "net_of_mine.py").write_text(OWN)
    (tmp_path / "torch.py").write_text("raise AssertionError('hides a package')")
    options = "--data rows.csv --energy net_of_mine.Own --objective NCE --batch_size 16 --steps 1 --out run --quiet"
    code = "import sys; from adance.cli import main; sys.exit(main(sys.argv[1:]))"
    score = ["score", "run", "rows.csv", "--out", "e.csv", "--trust", "net_of_mine"]
    for argv in (["train", *options.split(), "--device", "cpu"], score):
        # -P or a script's own folder: nothing of the current one on the path, as for a console script
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / "adance").write_text(code)
        command = [sys.executable, str(tmp_path / "bin" / "adance"), *argv]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "e.csv").exists()


@pytest.mark.parametrize("where", ["typed", "file"])
def test_a_class_that_is_named_has_its_own_defaults(where, adance, tmp_path):
    """The default objective draws one noise sample per datum, RankingNCE ten."""
    (tmp_path / "own.yaml").write_text("objective: RankingNCE")
    argv = ["--objective", "RankingNCE"] if where == "typed" else ["--config", "own.yaml"]
    answer = adance("train", *argv, "--print_config")
    assert yaml.safe_load(answer.out)["objective"]["init_args"]["noises"] == 10


def test_switches_need_no_value(tiny, tmp_path):
    for number, (argv, flip) in enumerate(
        [((), False), (("--flip",), True), (("--flip", "true"), True), (("--flip", "false"), False)]
    ):
        assert tiny(f"run{number}", *argv, "--dequantize").status == 0
        config = yaml.safe_load((tmp_path / f"run{number}" / "config.yaml").read_text())
        assert (config["flip"], config["dequantize"]) == (flip, True)


def test_samples_of_a_class(adance, tmp_path):
    options = (
        "--data digits --energy ClassConditionalMLP --energy.hidden [8] --batch_size 16 --steps 3 --device cpu --quiet"
    )
    chains = "--objective.sampler Langevin --objective.sampler.steps 2"
    assert adance("train", *options.split(), *chains.split(), "--out", "run").status == 0
    for name, label in (("a", 3), ("b", 3), ("c", 4)):
        assert adance("sample", "run", "--n", "4", "--label", label, "--out", f"{name}.npz").status == 0
    a, b, c = (np.load(tmp_path / f"{name}.npz")["x"] for name in "abc")
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    assert np.array_equal(a, load("run").of_class(3).sample(4).clamp(-1, 1))
    assert adance("sample", "run", "--n", "4", "--label", "3", "--mask", "left", "--out", "d.npz").status == 0
    assert adance("score", "run", "digits", "--out", "e.csv").status == 0
    assert "there is no class 10; classes are 0 to 9" in adance("sample", "run", "--label", "10").error


KERNELS = ("Langevin", "MALA", "HMC", "RandomWalkMetropolis", "UnderdampedLangevin", "MomentumLangevin")


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_have_their_names_in_training_and_in_sampling(kernel, adance, rows, tmp_path):
    options = "--data rows.csv --energy MLP --energy.hidden [4] --batch_size 16 --steps 2 --device cpu --quiet"
    chains = ("--objective.sampler", kernel, "--objective.sampler.steps", "2", "--objective.pool", "16")
    assert adance("train", *options.split(), *chains, "--objective.buffer", "32", "--out", "run").status == 0
    assert type(load("run").sampler).__name__ == kernel
    argv = ("sample", "run", "--n", "3", "--sampler", kernel, "--sampler.steps", "5")
    for name in ("a", "b"):
        assert adance(*argv, "--out", f"{name}.npz").status == 0
    a, b = (np.load(tmp_path / f"{name}.npz")["x"] for name in "ab")
    assert np.array_equal(a, b)
    assert adance(*argv, "--steps", "0", "--out", "c.npz").status == 0
    assert not np.array_equal(a, np.load(tmp_path / "c.npz")["x"])
    assert "no kernel is called 'Nope'" in adance("sample", "run", "--sampler", "Nope", "--out", "d.npz").error


def test_a_kernel_inside_another_has_its_name_too(adance, rows):
    options = "--data rows.csv --energy MLP --energy.hidden [4] --batch_size 16 --steps 1 --device cpu --quiet"
    assert adance("train", *options.split(), "--objective", "NCE", "--out", "run").status == 0
    for argv in (
        ("Tempering", "--sampler.kernel", "MALA", "--sampler.kernel.steps", "3"),
        ("Annealed", "--sampler.kernel", "HMC", "--sampler.steps", "3", "--sampler.step_size", "[0.1,0.01]"),
    ):
        answer = adance("sample", "run", "--n", "3", "--sampler", *argv, "--out", "x.npz")
        assert answer.status == 0, answer.error


def test_events_without_a_picture_train_without_one(adance, tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(60, 3)))
    options = "--energy MLP --energy.hidden [4] --objective NCE --steps 2 --sample_every 1 --batch_size 16 --quiet"
    answer = adance("train", "--data", "rows.npy", *options.split(), "--out", "run", "--device", "cpu")
    assert answer == (0, "run: run\n", "")
    assert adance("sample", "run", "--n", "4", "--steps", "2", "--out", "x.npz").status == 0
    assert np.load(tmp_path / "x.npz")["x"].shape == (4, 3)


def test_sample(adance, trained_run, tmp_path):
    answer = adance("sample", "run", "--n", "5", "--seed", "3")
    assert answer == (0, "weights: moving average, step 6\nsamples: run/samples/sample-3.png\n", "")
    assert Image.open(tmp_path / "run" / "samples" / "sample-3.png").mode == "L"
    before = weights_of(tmp_path / "run")
    for name, argv in {
        "a": ["--seed", "3"],
        "b": ["--seed", "3"],
        "c": ["--seed", "4"],
        "d": ["--weights", "last", "--step", "3"],
    }.items():
        assert adance("sample", "run", "--n", "5", *argv, "--out", f"{name}.npz").status == 0
    a, b, c, d = (np.load(tmp_path / f"{name}.npz")["x"] for name in "abcd")
    assert a.shape == (5, 1, 8, 8)
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    assert np.array_equal(a, load("run").sample(5, seed=3).clamp(-1, 1))
    assert np.array_equal(a, np.load(tmp_path / "run" / "samples" / "sample-3.npz")["x"])
    assert np.array_equal(d, load("run", weights="last", step=3).sample(5).clamp(-1, 1))
    assert weights_of(tmp_path / "run") == before


def test_samples_of_vectors_are_in_the_units_of_the_data(adance, rows, tmp_path):
    options = "--energy MLP --energy.hidden [4] --objective NCE --steps 2 --batch_size 16 --quiet --device cpu"
    assert adance("train", "--data", "rows.csv", *options.split(), "--out", "run").status == 0
    assert adance("sample", "run", "--n", "2000", "--steps", "0", "--out", "x.npz").status == 0
    x = np.load(tmp_path / "x.npz")["x"]
    assert x.mean(0) == pytest.approx([30, -2, 0], rel=0.05, abs=0.1)
    assert x.std(0) == pytest.approx([5, 0.1, 1], rel=0.15)


@pytest.mark.parametrize("header", ["", 'height,weight loss,"a, b",class\n'])
def test_samples_of_a_table_are_a_table_like_it(header, adance, rows, tmp_path):
    label = ",0" if header else ""
    lines = (f"{a!r},{b!r},{c!r}{label}\n" for a, b, c in rows.tolist())
    (tmp_path / "table.csv").write_text(header + "".join(lines))
    options = "--energy MLP --energy.hidden [4] --objective NCE --steps 2 --batch_size 16 --quiet --device cpu"
    assert adance("train", "--data", "table.csv", *options.split(), "--out", "run").status == 0
    assert adance("sample", "run", "--n", "5", "--steps", "2", "--out", "x.npz").status == 0
    answer = adance("sample", "run", "--n", "5", "--steps", "2")
    assert answer.out.endswith("samples: run/samples/sample-0.csv\n")
    text = (tmp_path / "run" / "samples" / "sample-0.csv").read_text()
    first, *others = text.splitlines()
    assert (first == 'height,weight loss,"a, b"') == bool(header)
    table = others if header else [first, *others]
    x = np.array([line.split(",") for line in table], dtype=float)
    assert np.array_equal(x, np.load(tmp_path / "x.npz")["x"])  # to the last digit
    assert adance("score", "run", "run/samples/sample-0.csv").status == 0


def test_sample_fills_in_what_is_not_kept(adance, trained_run, tmp_path):
    data = load_data("digits")
    held_out = data.batch(torch.arange(3), "test").numpy()
    parts = {
        "left": np.s_[..., :4],
        "right": np.s_[..., 4:],
        "top": np.s_[..., :4, :],
        "bottom": np.s_[..., 4:, :],
    }
    for half, part in parts.items():
        assert adance("sample", "run", "--n", "3", "--mask", half, "--out", "x.npz").status == 0
        x = np.load(tmp_path / "x.npz")["x"]
        assert np.array_equal(x[part], held_out[part])
        assert not np.array_equal(x, held_out)
    mask = np.zeros((8, 8), dtype=int)
    mask[2:5] = 1
    np.save(tmp_path / "mask.npy", mask)
    images = data.train[:2].numpy()
    np.save(tmp_path / "images.npy", images)
    options = "--n 3 --mask mask.npy --given digits --out x.npz"
    assert adance("sample", "run", *options.split()).status == 0
    given = data.transform.to_model(data.train[:3]).numpy()
    x = np.load(tmp_path / "x.npz")["x"]
    assert np.array_equal(x[..., 2:5, :], given[..., 2:5, :])


def test_score_gives_the_models_energies_of_the_rows_in_their_order(adance, trained_run, tmp_path):
    answer = adance("score", "run", "digits", "--out", "scores.csv")
    assert answer == (0, "energies: 1797 rows in scores.csv\n", "")
    header, table = read_csv(tmp_path / "scores.csv")
    assert header == ["row", "energy"]
    data, run = load_data("digits"), load("run")
    x = data.transform.to_model(torch.cat([data.train, data.test]))
    assert np.array_equal(table[:, 0], np.arange(len(x)))
    np.testing.assert_allclose(table[:, 1], run.score(x).numpy(), rtol=1e-5)
    printed = adance("score", "run", "digits", "--weights", "last", "--step", "3").out
    assert printed.splitlines()[0] == "row,energy"
    first = float(printed.splitlines()[1].split(",")[1])
    assert first == pytest.approx(float(load("run", weights="last", step=3).score(x[:1])), rel=1e-5)


def test_score_brings_raw_rows_into_the_units_of_the_run(adance, rows, tmp_path):
    options = "--energy MLP --energy.hidden [4] --objective NCE --steps 4 --batch_size 16 --quiet --device cpu"
    assert adance("train", "--data", "rows.csv", *options.split(), "--out", "run", "--ema", "0").status == 0
    # other rows, whose own mean and deviation are quite different
    (tmp_path / "new.csv").write_text("25,-2.1,0\n40,-1.5,3\n30,-2,1\n")
    assert adance("score", "run", "new.csv", "--out", "scores.csv").status == 0
    header, table = read_csv(tmp_path / "scores.csv")
    assert header == ["row", "energy", "log_density"]
    train = load_data(tmp_path / "rows.csv").train.numpy()
    mean, std = train.mean(0), train.std(0)
    run = load("run")
    x = torch.tensor((np.array([[25, -2.1, 0], [40, -1.5, 3], [30, -2, 1]]) - mean) / std, dtype=torch.float32)
    energies = run.score(x).numpy()
    np.testing.assert_allclose(table[:, 1], energies, rtol=1e-5)
    np.testing.assert_allclose(table[:, 2], -energies - run.log_normalizer - np.log(std).sum(), rtol=1e-5)


def test_densities_sum_to_one_in_the_units_of_the_data(adance, tmp_path):
    """A normal law of one axis, in units of its own; a normal noise and an energy with a normal base learn it."""
    z = torch.randn(3000, 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (tmp_path / "line.csv").write_text("".join(f"{1000 + 20 * value}\n" for value in z.flatten().tolist()))
    options = "--energy MLP --energy.hidden [8] --objective NCE --lr 1e-2 --steps 400 --batch_size 128 --ema 0"
    assert adance("train", "--data", "line.csv", *options.split(), "--out", "run", "--quiet").status == 0
    points = np.linspace(840, 1160, 801)
    (tmp_path / "grid.csv").write_text("".join(f"{value}\n" for value in points.tolist()))
    assert adance("score", "run", "grid.csv", "--out", "scores.csv").status == 0
    table = read_csv(tmp_path / "scores.csv")[1]
    step = points[1] - points[0]
    in_data_units = np.exp(table[:, 2]).sum() * step
    std = load_data(tmp_path / "line.csv").train.numpy().std()
    in_model_units = np.exp(-table[:, 1] - load("run").log_normalizer).sum() * step / std
    assert in_data_units == pytest.approx(in_model_units, rel=1e-5)
    assert in_data_units == pytest.approx(1, abs=0.1)
    assert math.exp(table[400, 2]) == pytest.approx(1 / (20 * math.sqrt(2 * math.pi)), rel=0.2)
