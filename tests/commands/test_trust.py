"""Your own classes: each way to trust them works, in every command, and only for that command."""

import sys

import pytest

import adance as library
from adance.errors import InputError
from adance.registry import trust, trust_restored, trusted

OWN = """
from torch import nn

import adance
from helper_of_mine import WIDTH
from adance.samplers import MALA


class Net(nn.Module):
    def __init__(self, event_shape, width=WIDTH, more=None):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(event_shape[0], width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(1) + x.square().sum(1) / 2


class Wide(Net):
    def __init__(self, event_shape):
        super().__init__(event_shape, 8)


class Goal(adance.NCE):
    pass


class Move(MALA):
    pass


def psi(u):
    return u**2
"""

OPTIONS = "--data moons --objective NCE --steps 1 --batch_size 16 --device cpu --quiet"
NET = "energy: {class_path: net_of_mine.Net, init_args: {width: 3}}\n"


@pytest.fixture
def own(adance, tmp_path, monkeypatch):
    """The command line, with modules of the user in the current folder, which is not on the path."""
    (tmp_path / "net_of_mine.py").write_text(OWN)
    (tmp_path / "helper_of_mine.py").write_text("WIDTH = 4\n")
    (tmp_path / "own.yaml").write_text(NET)
    before = list(sys.path)
    yield adance
    for name in ("net_of_mine", "helper_of_mine"):
        sys.modules.pop(name, None)
    assert sys.path == before
    assert trusted() == ()


def test_a_file_cannot_name_a_class_that_is_not_trusted(own):
    answer = own("train", "--config", "own.yaml", *OPTIONS.split(), "--out", "run")
    assert answer.status == 2
    advice = 'add --trust net_of_mine (or adance.trust("net_of_mine")) if you trust its code'
    assert f"--energy: net_of_mine.Net is not a class of adance: {advice}" in answer.error
    assert "net_of_mine" not in sys.modules


@pytest.mark.parametrize("way", ["--trust net_of_mine", "--trust=other --trust=net_of_mine", "variable", "call"])
def test_a_file_can_name_a_class_that_is_trusted(way, own, tmp_path, monkeypatch):
    options = way.split() if way.startswith("--") else []
    with trust_restored(), monkeypatch.context() as patch:
        if way == "variable":
            patch.setenv("ADANCE_TRUST", "other, net_of_mine")
        if way == "call":
            trust("net_of_mine")
        for argv in (["train", "--config", "own.yaml", *OPTIONS.split(), "--out", "run"], ["score", "run", "moons"]):
            answer = own(*argv, *options)
            assert answer.status == 0, answer.error
    assert "    width: 3\n" in (tmp_path / "run" / "config.yaml").read_text()


@pytest.mark.parametrize(
    "typed",
    [
        "--energy net_of_mine.Net --energy.width 5",
        "--energy=net_of_mine.Net",
        "--energy.class_path=net_of_mine.Net --energy.init_args.width=2",
        '--energy {"class_path":"net_of_mine.Net"}',
        "--objective net_of_mine.Goal --objective.noise uniform",
        "--objective AdaNCE --objective.sampler net_of_mine.Move --objective.sampler.steps 2 --objective.pool 16",
        "--objective BRM --objective.psi Custom --objective.psi.psi net_of_mine.psi --trust net_of_mine",
    ],
)
def test_a_class_that_is_typed_is_trusted(typed, own):
    small = [] if "--energy" in typed else ["--energy.hidden=[4]"]
    answer = own("train", *OPTIONS.split(), *typed.split(), *small, "--out", "run")
    assert answer.status == 0, answer.error
    assert own("score", "run", "moons").status == 2
    assert own("score", "run", "moons", "--trust", "net_of_mine").status == 0


def test_trust_in_a_class_that_is_typed_is_in_it_alone(own, tmp_path):
    (tmp_path / "goal.yaml").write_text("objective: net_of_mine.Goal")
    argv = ("--energy", "net_of_mine.Net", "--out", "run")
    answer = own("train", *OPTIONS.split(), *argv, "--config", "goal.yaml")
    assert "net_of_mine.Goal is not a class of adance" in answer.error


def test_every_command_takes_it(own):
    assert own("train", *OPTIONS.split(), "--energy", "net_of_mine.Net", "--out", "run").status == 0
    quick = "--n 40 --chains 2 --max_temperatures 3 --quiet"
    for argv in (
        "sample run --n 2 --steps 1 --out x.csv",
        "sample run --n 2 --sampler net_of_mine.Move --sampler.steps 1 --out x.csv",
        f"evaluate run {quick}",
        "report run",
        "train --resume run --steps 2 --quiet",
    ):
        assert "add --trust net_of_mine" in own(*argv.split()).error
        answer = own(*argv.split(), "--trust", "net_of_mine")
        assert answer.status == 0, answer.error


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--energy=net_of_mine.psi", "net_of_mine.psi is not an energy"),
        ("--energy=net_of_mine.WIDTH", "net_of_mine.WIDTH is not an energy"),
        ("--energy=net_of_mine.No", "cannot find the class 'net_of_mine.No'"),
        ("--energy=net_of_mine.Net.forward", "cannot find the class 'net_of_mine.Net.forward'"),
        ("--objective=net_of_mine.Net", "net_of_mine.Net is not an objective"),
        ("--objective.sampler=net_of_mine.Goal", "net_of_mine.Goal is not a kernel"),
        (
            "--objective=adance.objectives.Objective",
            "Objective of adance.objectives is not an objective",
        ),
        ("--energy=net_of_mine.Net --energy.widht=3", "'widht' is not accepted (did you mean width?); Net takes width"),
    ],
)
def test_another_kind_is_refused_though_it_is_trusted(option, message, own):
    answer = own("train", "--data", "moons", *option.split(), "--trust", "net_of_mine", "--steps", "0", "--quiet")
    assert answer.status == 2
    assert message in answer.error


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_processes_of_a_sweep_trust_what_it_does(jobs, own):
    options = [*OPTIONS.split(), "--jobs", jobs]
    over = ("--over", "energy=net_of_mine.Net,net_of_mine.Wide")
    answer = own("sweep", *options, *over, "--out", "typed")
    assert answer.status == 0, answer.error
    assert "add --trust net_of_mine" in own("sweep", *options, "--over", "energy=MLP", "--out", "typed").error
    argv = ("--config", "own.yaml", "--over", "seed=0,1", "--trust", "net_of_mine", "--out", "named")
    answer = own("sweep", *options, *argv)
    assert answer.status == 0, answer.error


def test_objects_of_ones_own_need_no_trust_until_a_file_makes_them_again(own, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        import net_of_mine

    data = library.load_data("moons")
    energy = net_of_mine.Net(data.event_shape, 3)
    library.remember(energy, {"event_shape": [2], "width": 3})
    settings = library.Settings(steps=1, batch_size=16)
    library.Trainer(energy, library.NCE(), data, settings, "run", device="cpu", show_progress=False).fit()
    with pytest.raises(InputError, match="add --trust net_of_mine"):
        library.load("run")
    given = net_of_mine.Net(data.event_shape, 3)
    assert library.load("run", energy=given).step == 1
    again = library.Trainer.resume("run", energy=given, steps=2, device="cpu", show_progress=False)
    assert again.fit().step == 2


def test_an_installed_module_imports_nothing_from_the_current_folder(own, tmp_path, monkeypatch):
    installed = tmp_path / "installed"
    installed.mkdir()
    (tmp_path / "net_of_mine.py").rename(installed / "net_of_mine.py")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(installed)
        answer = own("train", *OPTIONS.split(), "--energy", "net_of_mine.Net", "--out", "run")
    assert answer.status == 2
    assert "No module named 'helper_of_mine'" in answer.error
    assert "helper_of_mine" not in sys.modules
