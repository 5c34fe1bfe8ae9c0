"""A class of the library is one file and one registration: then every command knows it by its name."""

import sys
from types import ModuleType

import pytest
import torch
from torch import nn

import adance.contrasts
import adance.energies
import adance.noises
import adance.objectives
import adance.samplers
from adance.cli import COMMANDS
from adance.contrasts import KL
from adance.data import TOYS
from adance.energies import Gaussian
from adance.noises import Noise, NoiseSample
from adance.objectives import NCE
from adance.samplers import RandomWalkMetropolis

TINY = ["--data", "moons", "--steps", "2", "--batch_size", "8", "--device", "cpu", "--quiet", "--energy.hidden", "[4]"]


class NewEnergy(nn.Module):
    def __init__(self, event_shape, scale: float = 2.0):
        super().__init__()
        self.scale, self.shift = scale, nn.Parameter(torch.zeros(event_shape))

    def forward(self, x):
        return ((x - self.shift) / self.scale).square().flatten(1).sum(1)


class NewPsi(KL):
    pass


class NewNoise(Noise):
    def sample(self, n, data, generator=None, condition=None):
        return NoiseSample(3 * torch.randn((n, *data.shape[1:]), generator=generator))

    def energy(self, x, sample=None, condition=None):
        return -Gaussian(torch.zeros(2), torch.full((2,), 3.0)).log_prob(x)


class NewKernel(RandomWalkMetropolis):
    pass


class NewObjective(NCE):
    pass


@pytest.mark.parametrize(
    ("room", "made", "options"),
    [
        (adance.energies, NewEnergy, "--energy NewEnergy --energy.scale 3 --objective NCE"),
        (adance.contrasts, NewPsi, "--objective BRM --objective.psi NewPsi --objective.psi.noises 2"),
        (adance.noises, NewNoise, "--objective NCE --objective.noise NewNoise"),
        (adance.samplers, NewKernel, "--objective.sampler NewKernel --objective.sampler.steps 2"),
        (adance.objectives, NewObjective, "--objective NewObjective --objective.noises 2"),
    ],
)
def test_an_export_of_its_room_registers_a_class(adance, monkeypatch, room: ModuleType, made: type, options):
    def run():
        tiny = [option for option in TINY if made is not NewEnergy or option not in ("--energy.hidden", "[4]")]
        return adance("train", *tiny, *options.split(), "--out", made.__name__)

    assert f"called '{made.__name__}'" in run().error
    monkeypatch.setattr(room, made.__name__, made, raising=False)
    monkeypatch.setattr(room, "__all__", [*room.__all__, made.__name__])
    monkeypatch.setattr(made, "__module__", f"{room.__name__}.new")
    assert run().status == 0
    assert adance("sample", made.__name__, "--n", "2", "--steps", "2").status == 0


def test_a_data_set_is_one_entry(adance, monkeypatch):
    assert adance("train", "--data", "newset", *TINY[2:]).status == 2
    monkeypatch.setitem(TOYS, "newset", TOYS["moons"])
    monkeypatch.setattr("adance.data.load.NAMES", ("newset",))
    assert adance("train", "--data", "newset", *TINY[2:], "--objective", "NCE", "--out", "run").status == 0


def test_a_command_is_one_file_and_one_entry(adance, monkeypatch):
    assert adance("greet").status == 2
    command = ModuleType("adance.commands.greet")
    command.run = lambda argv: print("hello", *argv)
    monkeypatch.setitem(sys.modules, "adance.commands.greet", command)
    monkeypatch.setitem(COMMANDS, "greet", "say hello")
    assert adance("greet", "you").out == "hello you\n"
