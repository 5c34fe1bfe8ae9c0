"""What a name finds: classes of the library by their last word, others only if they are trusted."""

import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from adance import energies, objectives, samplers
from adance.contrasts import Contrast
from adance.contrasts.bregman import Bregman
from adance.errors import InputError
from adance.noises import Noise
from adance.objectives import AdaNCE, Recipe
from adance.registry import find_class, find_function, registered, trust, trust_restored, trust_typed, trusted
from adance.samplers import MALA, Kernel
from adance.signatures import parameters

KINDS = (nn.Module, Recipe, Contrast, Noise, Kernel)
MODULES = st.sampled_from(["antigravity", "os", "adance", "this", "torch.hub", "builtins", "", ".", "adance.os"])


@given(st.text() | st.builds("{}.{}".format, MODULES, st.text()), st.sampled_from(KINDS))
def test_a_name_imports_nothing_and_finds_a_class_of_its_kind_or_none(path, kind):
    for room in (energies, objectives, samplers):
        assert room.__name__ in sys.modules
    registered(*KINDS)
    before = set(sys.modules)
    if path.rpartition(".")[2] in registered(kind) and path.partition(".")[0] in ("adance", path):
        assert find_class(path, kind) in registered(kind).values()
    else:
        with pytest.raises(InputError) as refused:
            find_class(path, kind)
        assert len(str(refused.value).splitlines()) == 1
    assert set(sys.modules) == before


@pytest.mark.parametrize("path", ["AdaNCE", "adance.AdaNCE", "adance.objectives.AdaNCE", "adance.moved.since.AdaNCE"])
def test_classes_of_the_library_are_found_by_their_last_name(path):
    assert find_class(path, Recipe) is AdaNCE


def test_only_concrete_classes_of_a_kind_are_registered():
    assert {"MLP", "ConvNet", "RBM"} <= registered(nn.Module).keys()
    others = {"LogRatio", "LossOutput", "Objective", "Recipe", "Setting"}
    assert set(registered(Recipe)) == set(objectives.__all__) - others
    assert {"Langevin", "MALA", "Tempering"} <= registered(Kernel).keys()
    assert not {"Kernel", "SplitKernel", "ChainStarts", "ReplayBuffer"} & registered(Kernel).keys()
    assert "Ranking" in registered(Contrast)
    assert "Ranking" not in registered(Bregman)


def test_trust_in_a_package_is_in_its_modules_and_in_no_others():
    with trust_restored():
        trust("torch.nn.modules")
        assert find_class("torch.nn.modules.linear.Linear", nn.Module) is nn.Linear
        for path in ("torch.nn.Linear", "torch.nn.modules_too.Linear", "torch.hub.load"):
            with pytest.raises(InputError, match="is not a class of adance"):
                find_class(path, nn.Module)
        trust("torch.nn.Linear")
        assert find_class("torch.nn.Linear", nn.Module) is nn.Linear
        with pytest.raises(InputError, match="is not a class of adance"):
            find_class("torch.nn.Conv2d", nn.Module)
    assert trusted() == ()


def test_names_that_are_trusted_on_a_command_line_are_taken_out_of_it():
    assert trust_typed(["run", "--trust", "a", "--n", "3", "--trust=b.c"]) == ["run", "--n", "3"]
    assert trusted() == ("a", "b.c")
    for name in ("", "a b", "../a", "a.py/b", "-a"):
        with pytest.raises(InputError, match="is not the name of a module"):
            trust(name)


def test_a_function_must_be_defined_where_it_is_trusted():
    with pytest.raises(InputError, match=r"os\.system is not a function of adance: add --trust os "):
        find_function("os.system")
    trust("os", "torch.nn", "subprocess", "textwrap")
    assert find_function("textwrap.dedent") is textwrap.dedent
    for path in ("os.system", "os.path.join", "subprocess.Popen", "os.sep"):
        with pytest.raises(InputError, match=r"which is not trusted|is not a function"):
            find_function(path)


class Passing(AdaNCE):
    def __init__(self, mine: int = 1, **others):
        super().__init__(**others)


def test_keyword_arguments_stand_for_those_of_the_base():
    found = parameters(Passing)
    assert list(found)[:3] == ["mine", "sampler", "interval"]
    assert found["sampler"].kinds == (Kernel,)
    assert found["sampler"].takes_changes
    assert found["sampler"].default is None
    assert parameters(MALA)["steps"].plain is int
