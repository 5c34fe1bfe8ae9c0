import pytest
import torch
from torch import nn

from adance import load_pretrained
from adance.cli import main
from adance.errors import InputError
from adance.evaluation import SampleDistance
from adance.training.pretrained import FOLDERS, copy_pretrained, pretrained_names

MAX_BYTES = 8 * 2**20


def test_the_package_holds_few_bytes_of_pretrained_runs():
    assert "digits" in pretrained_names()
    sizes = [file.stat().st_size for name in pretrained_names() for file in (FOLDERS / name).rglob("*")]
    assert 0 < sum(sizes) < MAX_BYTES


@pytest.mark.parametrize("name", pretrained_names())
def test_every_pretrained_run_samples_images_in_their_range(name):
    run = load_pretrained(name)
    x = run.sample(2, steps=30)
    assert x.shape == (2, *run.event_shape)
    assert x.min() >= -1
    assert x.max() <= 1
    assert {weight.dtype for weight in run.energy.state_dict().values()} == {torch.float32}


def test_samples_of_the_digits_are_digits(digits):
    distance = SampleDistance(digits, n=300)
    assert distance(load_pretrained("digits")) < 15  # noise has more than 400, training images of this number 3


def test_commands_work_on_a_copy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sample", "pretrained:digits", "--n", "4", "--steps", "5", "--out", "four.png"]) == 0
    assert main(["report", "pretrained:digits"]) == 0
    assert (tmp_path / "four.png").exists()
    copy = tmp_path / "runs" / "pretrained-digits"
    assert (copy / "report.html").exists()
    assert not (FOLDERS / "digits" / "report.html").exists()
    (copy / "note").touch()
    assert (copy_pretrained("digits") / "note").exists()  # it is copied once


def test_an_unknown_name_is_an_error_with_the_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"no pretrained run 'digit' \(did you mean digits\?\)\. Available: .*digits"):
        load_pretrained("digit")
    assert main(["sample", "pretrained:nope"]) == 2
    assert "there is no pretrained run 'nope'" in capsys.readouterr().err
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(InputError, match="cannot copy the pretrained run to"):
        copy_pretrained("digits", tmp_path / "runs")


def test_the_energy_of_mnist_is_low_on_digits_alone(digits):
    small = digits.batch(torch.arange(300))
    large = nn.functional.interpolate(small, size=(20, 20), mode="bilinear")
    x = nn.functional.pad(large, (4, 4, 4, 4), value=-1.0)  # as in MNIST, 20 pixels of digit and a margin
    shuffled = x.flatten(1)[:, torch.randperm(784)].view_as(x)
    energy = load_pretrained("mnist").energy
    with torch.no_grad():
        highest = energy(x).max()
        assert energy(shuffled).min() > highest
        assert energy(-x).min() > highest
