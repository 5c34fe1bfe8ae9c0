import copy
import inspect
import subprocess
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from adance.configurable import Configurable, build, describe, remember
from adance.contrasts import Contrast
from adance.energies import MLP, ConvNet, Gaussian, freeze
from adance.errors import InputError
from adance.noises import FixedNoise
from adance.objectives import NCE, AdaNCE, Recipe, ScoreMatching, Setting
from adance.registry import trust
from adance.samplers import HMC, MALA, BlockGibbs, Kernel, Langevin
from adance.signatures import parameters


def again(made, kind):
    config = yaml.safe_load(yaml.safe_dump(describe(made)))
    other = build(config, kind)
    assert type(other) is type(made)
    assert describe(other) == describe(made)
    return other


@pytest.mark.parametrize("net", [MLP((3,), [4, 5], base=False), ConvNet((1, 8, 8), width=0.25, slope=0.1)])
def test_energies_round_trip(net):
    other = again(net, nn.Module)
    other.load_state_dict(net.state_dict())
    x = torch.randn(2, *net.init_args.get("event_shape", ()))
    assert torch.equal(other.eval()(x), net.eval()(x))


def test_adance_round_trips_with_its_sampler():
    recipe = AdaNCE(MALA(steps=7, temperature=0.5), interval=20, pool=100, start="persistent", noises=2)
    other = again(recipe, Recipe)
    assert isinstance(other.sampler, MALA)
    assert (other.sampler.steps, other.sampler.temperature, other.interval, other.pool) == (7, 0.5, 20, 100)
    assert (other.start, other.noises) == ("persistent", 2)


def test_the_resolved_sampler_is_described():
    assert isinstance(again(AdaNCE().resolve(Setting((2,), 8)), Recipe).sampler, MALA)


def test_nce_round_trips():
    other = again(NCE("uniform", noises=3, learn_log_z=False), Recipe)
    assert (other.noise, other.noises, other.learn_log_z) == ("uniform", 3, False)


def test_bounds_round_trip():
    assert tuple(again(Langevin(step_size=0.5, noise_std=0.1, bounds=(-1.0, 1.0)), Kernel).bounds) == (-1.0, 1.0)


@dataclass(frozen=True)
class Made(Configurable):
    first: int
    widths: list[int] = field(default_factory=lambda: [1, 2])
    kernel: Kernel = field(default_factory=MALA)
    seen: list[int] = field(default_factory=list, init=False)


def test_defaults_that_a_dataclass_makes_round_trip():
    trust(__name__)
    assert again(Made(1), Made).widths == [1, 2]
    assert again(copy.deepcopy(Made(1)), Made).kernel.steps == 100
    other = again(Made(1, [3], kernel=MALA(steps=7)), Made)
    assert (other.widths, other.kernel.steps) == ([3], 7)
    assert list(describe(Made(1))["init_args"]) == ["first", "widths", "kernel"]
    assert parameters(Made)["widths"].default == [1, 2]


def test_numpy_numbers_round_trip():
    other = again(Langevin(np.int64(3), np.float32(0.5), bounds=(np.float64(-1), 1)), Kernel)
    assert describe(other)["init_args"] == {"steps": 3, "step_size": 0.5, "temperature": 1.0, "bounds": [-1.0, 1]}
    assert again(NCE(noises=np.int64(3)), Recipe).noises == 3


def test_positional_arguments_are_remembered_by_name():
    config = describe(Langevin(3, 0.5))
    assert config["class_path"] == "adance.Langevin"
    assert config["init_args"] == {"steps": 3, "step_size": 0.5, "temperature": 1.0, "bounds": None}


def test_classes_of_another_kind_are_refused_before_they_are_called(monkeypatch):
    calls = []
    monkeypatch.setattr(subprocess.Popen, "__init__", lambda self, *args, **kwargs: calls.append(args))
    for kind in (nn.Module, Kernel, Recipe, Configurable):
        with pytest.raises(InputError, match=r"subprocess\.Popen is not a class of adance: add --trust subprocess "):
            build({"class_path": "subprocess.Popen", "init_args": {"args": "true"}}, kind)
    nested = {"class_path": "adance.objectives.AdaNCE", "init_args": {"sampler": {"class_path": "subprocess.Popen"}}}
    with pytest.raises(InputError, match=r"subprocess\.Popen"):
        build(nested, Recipe)
    trust("subprocess")
    for kind, name in ((nn.Module, "an energy"), (Kernel, "a kernel"), (Recipe, "an objective")):
        with pytest.raises(InputError, match=f"subprocess.Popen is not {name}"):
            build({"class_path": "subprocess.Popen", "init_args": {"args": "true"}}, kind)
    assert calls == []


@pytest.mark.parametrize("path", ["os.system", "builtins.eval", "adance.samplers.run_chains"])
def test_functions_are_refused(path):
    trust("os", "builtins")
    with pytest.raises(InputError, match="is not a kernel"):
        build({"class_path": path}, Kernel)


def test_an_energy_is_not_a_kernel():
    with pytest.raises(InputError, match=r"MLP of adance\.energies is not a kernel"):
        build(describe(MLP((2,))), Kernel)


@pytest.mark.parametrize(
    "path", ["nowhere.Net", "adance.energies.Nothing", "Nothing", "", ".relative.Net", "a..b", None]
)
def test_classes_that_cannot_be_found_are_refused(path):
    trust("nowhere")
    with pytest.raises(InputError, match=r"cannot find|no energy is called"):
        build({"class_path": path}, nn.Module)


def test_missing_class_path_is_refused():
    with pytest.raises(InputError):
        build({}, nn.Module)


@pytest.mark.parametrize(
    ("args", "message"),
    [({"stepz": 3}, "cannot construct"), ({"steps": "many"}, "Langevin: steps must be a whole number, got 'many'")],
)
def test_wrong_arguments_are_refused(args, message):
    with pytest.raises(InputError, match=message):
        build({"class_path": "adance.samplers.Langevin", "init_args": args}, Kernel)


@pytest.mark.parametrize("args", [[1], [], "x", "", 0, {1: 2}])
def test_arguments_that_are_no_mapping_of_names_are_refused(args):
    with pytest.raises(InputError, match="init_args must be a mapping of names to values, got "):
        build({"class_path": "adance.MLP", "init_args": args}, nn.Module)


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"class_path": "ConvNet", "init_args": {"event_shape": [1, 8, 8], "width": float("inf")}}, nn.Module),
        ({"class_path": "Custom", "init_args": {"psi": describe(MLP((2,)))}}, Contrast),
    ],
)
def test_any_error_of_a_constructor_is_reported(config, kind):
    with pytest.raises(InputError, match="cannot construct adance"):
        build(config, kind)


def test_memory_that_runs_out_is_not_an_error_of_the_config(monkeypatch):
    def no_memory(self, *args, **settings):
        raise MemoryError

    monkeypatch.setattr(MLP, "__init__", no_memory)
    with pytest.raises(MemoryError):
        build({"class_path": "MLP"}, nn.Module)


def test_a_constructor_s_own_complaint_is_kept():
    with pytest.raises(InputError, match="step_size > 0"):
        build({"class_path": "adance.samplers.Langevin", "init_args": {"step_size": -1}}, Kernel)


def test_copies_keep_their_arguments():
    net = MLP((1, 2, 2), (4,))
    for other in (copy.deepcopy(net), freeze(net), copy.copy(net)):
        assert describe(other) == describe(net)
    deep = copy.deepcopy(net)
    deep.init_args["hidden"] = (9,)
    assert net.init_args["hidden"] == (4,)


class Deep(MLP):
    def __init__(self, event_shape, depth=2, **settings):
        super().__init__(event_shape, [8] * depth, **settings)


def test_keyword_arguments_that_are_passed_on_round_trip():
    trust(__name__)
    other = again(Deep((2,), depth=3, activation="relu"), nn.Module)
    assert [type(layer).__name__ for layer in other.net].count("ReLU") == 3


def test_other_objects_can_be_given_arguments():
    layer = nn.Linear(2, 1)
    with pytest.raises(InputError, match="remember"):
        describe(layer)
    remember(layer, {"in_features": 2, "out_features": 1})
    trust("torch.nn")
    other = build(describe(layer), nn.Module)
    assert (other.in_features, other.out_features) == (2, 1)
    assert describe(other) == describe(layer)


def test_arguments_that_are_not_plain_are_refused():
    noise = FixedNoise(Gaussian(torch.zeros(2), torch.ones(2)))
    with pytest.raises(InputError, match="Gaussian"):
        describe(NCE(noise))


def test_a_class_is_named_by_the_shortest_package_that_has_it():
    paths = {type(made).__name__: describe(made)["class_path"] for made in (MLP((2,)), Langevin(), BlockGibbs())}
    assert paths == {"MLP": "adance.MLP", "Langevin": "adance.Langevin", "BlockGibbs": "adance.samplers.BlockGibbs"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HMC(steps=2.5), "HMC: steps must be a whole number, got 2.5"),
        (lambda: HMC(step_size="0.1"), "HMC: step_size must be a number, got '0.1'"),
        (lambda: HMC(mass=[1.0, 2.0]), "HMC: mass must be Tensor or None, got"),
        (lambda: Langevin(bounds=3), r"Langevin: bounds must be a tuple \(a number, a number\) or None, got 3"),
        (lambda: MALA(temperature=True), "MALA: temperature must be a number, got True"),
        (lambda: AdaNCE(sampler="HMC"), "AdaNCE: sampler must be Kernel or a mapping of settings or None, got 'HMC'"),
        (lambda: AdaNCE(sampler=HMC), "AdaNCE: sampler must be Kernel or"),
        (lambda: AdaNCE(interval=2.5), "AdaNCE: interval must be a whole number or 'auto' or None, got 2.5"),
        (lambda: NCE(noises="2"), "NCE: noises must be a whole number, got '2'"),
        (lambda: ScoreMatching(projections=None), "ScoreMatching: projections must be a whole number, got None"),
    ],
)
def test_arguments_of_the_wrong_type_are_one_clear_error(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_default_may_break_its_own_hint():
    class Loose(Kernel):
        def __init__(self, steps: int = None, scale: float = 1.0):  # noqa: RUF013
            self.steps, self.temperature = steps or 3, 1.0

        def init(self, energy, x, step_size=None): ...

        def step(self, energy, state, generator=None): ...

    assert Loose(scale=2).steps == 3
    with pytest.raises(InputError, match="Loose: scale must be a number"):
        Loose(scale="2")


def test_the_signature_of_a_class_is_that_of_its_constructor():
    assert list(inspect.signature(MLP).parameters) == ["event_shape", "hidden", "activation", "spectral_norm", "base"]
    assert next(iter(inspect.signature(NCE).parameters)) == "noise"
    with pytest.raises(AttributeError):
        MLP((2,)).__signature__  # noqa: B018
