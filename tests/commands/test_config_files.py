"""What ``--config`` reads: values keep their types, and what a file cannot rebuild is refused in one line."""

import sys

import pytest
import yaml

import adance as library
from adance.registry import trust, trust_restored
from adance.yaml_text import dump, read_mapping

NET = """
from torch import nn

import adance


class Untyped(nn.Module):
    def __init__(self, event_shape, **values):
        super().__init__()
        self.net = nn.Linear(2, 1)
        adance.remember(self, {"event_shape": list(event_shape), **values})

    def forward(self, x):
        return self.net(x).squeeze(1) + x.square().sum(1) / 2


class NoShape(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(1) + x.square().sum(1) / 2


class Plain(Untyped):
    def __init__(self, event_shape, norm=None, tag=None, path=None, day=None, rate=None):
        super().__init__(event_shape, norm=norm, tag=tag, path=path, day=day, rate=rate)


class Typed(Untyped):
    def __init__(
        self,
        event_shape,
        norm: str = "",
        tag: float | str = 0.0,
        path: str | None = None,
        day: str | int = 0,
        rate: float = 0.0,
    ):
        super().__init__(event_shape, norm=norm, tag=tag, path=path, day=day, rate=rate)
"""
VALUES = {"norm": "no", "tag": "1e3", "path": "[1]", "day": "2020-01-01", "rate": 0.001}
TEXTS = {"norm": "null", "tag": "7", "path": "null", "day": "1_000", "rate": 1.0}

OPTIONS = "--data moons --steps 1 --batch_size 16 --device cpu --quiet --out run"


@pytest.mark.parametrize("command", ["train", "sweep --over seed=0"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("objective: {class_path: NCE, init_args: null}", "--objective: this config cannot rebuild its objective: "),
        ("energy: {class_path: MLP, init_args: }", "--energy: this config cannot rebuild its energy: "),
        (
            "objective: {class_path: AdaNCE, init_args: {sampler: {class_path: MALA, init_args: null}}}",
            "--objective.sampler: this config cannot rebuild its sampler: ",
        ),
    ],
)
def test_arguments_that_were_not_recorded(text, message, command, adance, tmp_path, bytes_under):
    (tmp_path / "own.yaml").write_text(text)
    before = bytes_under()
    answer = adance(*command.split(), *OPTIONS.split(), "--config", "own.yaml")
    assert answer.status == 2
    assert message in answer.error
    assert "write {} to use the defaults" in answer.error
    assert bytes_under() == before


def test_a_class_without_arguments_uses_its_defaults(adance, tmp_path):
    (tmp_path / "own.yaml").write_text("objective: {class_path: NCE, init_args: {}}")
    assert adance("train", *OPTIONS.split(), "--energy.hidden", "[4]", "--config", "own.yaml").status == 0


@pytest.mark.parametrize("option", ["energy", "objective", "objective.noise"])
def test_null_where_an_object_is_needed(option, adance, tmp_path, bytes_under):
    (tmp_path / "own.yaml").write_text(f"objective: NCE\n{option}: null")
    before = bytes_under()
    for given in (["--config", "own.yaml"], ["--objective=NCE", f"--{option}=null"]):
        answer = adance("train", *OPTIONS.split(), *given)
        assert answer.status == 2
        assert f"--{option}: " in answer.error
        assert bytes_under() == before


def test_null_for_the_default_kernel(adance):
    answer = adance("train", *OPTIONS.split(), "--objective.sampler", "null", "--print_config")
    assert "    sampler: null\n" in answer.out


def test_a_constructor_that_overflows(adance):
    answer = adance("train", "--data", "digits", "--energy", "ConvNet", "--energy.width", ".inf", "--out", "run")
    assert answer.status == 2
    assert "--energy: cannot construct adance.ConvNet: " in answer.error


@pytest.fixture
def typed_net(adance, tmp_path):
    (tmp_path / "typed_net.py").write_text(NET)
    yield adance
    sys.modules.pop("typed_net", None)


@pytest.mark.parametrize("values", [VALUES, TEXTS])
@pytest.mark.parametrize("name", ["Plain", "Typed"])
def test_strings_stay_strings(name, values, typed_net, tmp_path):
    given = {"energy": {"class_path": f"typed_net.{name}", "init_args": values}}
    (tmp_path / "run0.yaml").write_text(yaml.safe_dump(given).replace("1e3", "'1e3'").replace("0.001", "1e-3"))
    options = [*OPTIONS.split()[:-1], "--objective", "NCE", "--trust", "typed_net"]
    for first, then in (("run0.yaml", "run1"), ("run1/config.yaml", "run2")):
        answer = typed_net("train", *options, then, "--config", first)
        assert answer.status == 0, answer.error
        with trust_restored():
            trust("typed_net")
            assert library.load(then).energy.init_args == {"event_shape": [2], **values}


def test_an_option_after_a_file_counts(typed_net, tmp_path):
    (tmp_path / "own.yaml").write_text("energy: {class_path: typed_net.Typed, tag: '7', norm: a}")
    argv = ("--energy.tag", "8", "--trust", "typed_net", "--print_config")
    read = yaml.safe_load(typed_net("train", "--config", "own.yaml", *argv).out)["energy"]["init_args"]
    assert (read["tag"], read["norm"]) == (8.0, "a")


@pytest.mark.parametrize("value", ["1e3", "1e-3", "-1.5E+7", ".5e2", 1e3, 1e-30, "no", "2020-01-01", "7", "e", "1e"])
def test_a_value_is_read_as_it_was_written(value):
    found = read_mapping(dump({"a": value, "b": [value]}), "a test")
    assert found == {"a": value, "b": [value]}
    assert type(found["a"]) is type(value)


def test_numbers_with_an_exponent():
    assert read_mapping("{a: 1e-3, b: -2E5, c: '1e-3', d: 1e, e: e3}", "a test") == {
        "a": 0.001, "b": -2e5, "c": "1e-3", "d": "1e", "e": "e3"
    }  # fmt: skip


def test_an_energy_that_does_not_take_the_shape(typed_net, tmp_path):
    options = [*OPTIONS.split()[:-1], "--objective", "NCE", "--trust", "typed_net"]
    assert typed_net("train", *options, "run1", "--energy", "typed_net.NoShape", "--energy.width", "6").status == 0
    answer = typed_net("train", *options, "run2", "--config", "run1/config.yaml")
    assert answer.status == 0, answer.error
    first, then = (yaml.safe_load((tmp_path / name / "config.yaml").read_text()) for name in ("run1", "run2"))
    assert first["energy"] == then["energy"] == {"class_path": "typed_net.NoShape", "init_args": {"width": 6}}


def test_an_event_shape_that_is_given(adance, tmp_path):
    (tmp_path / "own.yaml").write_text("energy: {class_path: MLP, init_args: {event_shape: [2], hidden: [4]}}")
    answer = adance("train", *OPTIONS.split(), "--config", "own.yaml", "--objective", "NCE")
    assert answer.status == 0, answer.error


def test_a_sweep_does_not_print_its_config(adance, bytes_under):
    answer = adance("sweep", *OPTIONS.split(), "--over", "seed=0", "--print_config")
    assert answer.status == 2
    assert "--print_config is for adance train" in answer.error
    assert bytes_under() == {}
