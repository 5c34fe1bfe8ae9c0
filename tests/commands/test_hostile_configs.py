"""Files of others cannot run code: they are refused by one line, and nothing that they name is imported or called."""

import json
import shutil
import sys

import numpy as np
import pytest

import adance as library
from adance.errors import InputError
from adance.training import Trainer

EVIL = """
from pathlib import Path

from adance.energies import MLP as Net
from adance.objectives import NCE as Goal
from adance.samplers import MALA as Move

Path({canary!r}).write_text("imported")


def psi(u):
    return u**2
"""

CALL = 'init_args: {command: touch PW, args: touch PW, source: \'open("PW", "w")\', f: evil.pt, repo_or_dir: evil}'

CONFIGS = {
    "os.system": f"energy: {{class_path: os.system, {CALL}}}",
    "short form": "energy: os.system",
    "popen": f"energy: {{class_path: subprocess.Popen, {CALL}}}",
    "eval": f"energy: {{class_path: builtins.eval, {CALL}}}",
    "exec": f"objective: {{class_path: builtins.exec, {CALL}}}",
    "torch.load": f"energy: {{class_path: torch.load, {CALL}}}",
    "torch.hub.load": f"energy: {{class_path: torch.hub.load, {CALL}}}",
    "pickle.loads": "energy: {class_path: pickle.loads, init_args: {data: evil}}",
    "runpy": "energy: {class_path: runpy.run_path, init_args: {path_name: evil_here.py}}",
    "here": "energy: {class_path: evil_here.Net}",
    "here, short": "energy: evil_here.Net",
    "here, objective": "objective: evil_here.Goal",
    "here, module": "objective: evil_here",
    "in the run": "energy: run.evil_run.Net",
    "script path": "energy: ./evil_here.Net",
    "parent": "energy: ../evil_here.Net",
    "parent package": "energy: ..evil_here.Net",
    "under our name": "energy: adance.evil_here.Net",
    "through our name": f"energy: {{class_path: adance.registry.os.system, {CALL}}}",
    "another class of ours": "energy: adance.training.Trainer",
    "our function": "objective: adance.load_data",
    "no name": "energy: {class_path: [os.system]}",
    "sampler": "objective: {class_path: AdaNCE, init_args: {sampler: {class_path: evil_here.Move}}}",
    "sampler, short": "objective: {sampler: evil_here.Move}",
    "sampler, dotted": "objective.sampler.class_path: evil_here.Move",
    "sampler in a sampler": "objective: {sampler: {class_path: Tempering, init_args: {kernel: evil_here.Move}}}",
    "sampler of another kind": "objective: {sampler: MLP}",
    "value of a change": f"objective: {{sampler: {{steps: {{class_path: os.system, {CALL}}}}}}}",
    "value in a list": f"energy: {{hidden: [{{class_path: os.system, {CALL}}}]}}",
    "noise": f"objective: {{class_path: NCE, init_args: {{noise: {{class_path: os.system, {CALL}}}}}}}",
    "psi": "objective: {class_path: BRM, init_args: {psi: evil_here.Net}}",
    "custom psi": "objective: {class_path: BRM, psi: {class_path: Custom, init_args: {psi: evil_here.psi}}}",
    "custom psi, call": "objective: {class_path: AdaBRM, psi: {class_path: Custom, psi: os.system}}",
    "custom psi, eval": "objective: {class_path: AdaBRM, psi: {class_path: Custom, psi: builtins.eval}}",
    "tag": "energy: !!python/object/apply:os.system ['touch PW']",
    "tag of a name": "energy: !!python/name:os.system",
    "tag of an object": "data: !!python/object/new:evil_here.Net {}",
    "tag of a module": "objective: !!python/module:evil_here",
    "trust": "trust: evil_here\nenergy: evil_here.Net",
    "config in a config": "config: other.yaml",
    "config in an object": "energy: {config: other.yaml}",
    "resume": "resume: run",
    "contains itself": "objective: &a {init_args: *a}",
    "too deep": "objective: " + "{init_args: " * 2000 + "{}" + "}" * 2000,
    "no mapping": "- os.system",
    "class for a number": f"steps: {{class_path: os.system, {CALL}}}",
    "class for data": f"data: {{class_path: os.system, {CALL}}}",
    "pickled data": "data: evil.npy",
    "pickled data elsewhere": "data: ../evil.npy",
    "tracker": "trackers: [evil_here]",
}

WHEN_TRAINED = ("class for data", "pickled data", "pickled data elsewhere", "tracker")
"""What is refused when a run begins, and not before."""

RUNS = {
    "energy": ("class_path: adance.MLP", "class_path: evil_here.Net"),
    "energy in the run": ("class_path: adance.MLP", "class_path: evil_run.Net"),
    "energy call": (
        "class_path: adance.MLP\n  init_args:",
        "class_path: os.system\n  init_args:\n    command: touch PW",
    ),
    "objective": ("class_path: adance.AdaNCE", "class_path: evil_here.Goal"),
    "sampler": ("class_path: adance.Langevin", "class_path: evil_here.Move"),
    "untyped": ("    hidden:", "    depth: {class_path: evil_here.Net}\n    hidden:"),
    "tag": ("data: digits", "data: digits\nmore: !!python/object/apply:os.system ['touch PW']"),
}


class Pickled:
    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return exec, (f"open({self.canary!r}, 'w')",)


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A folder full of traps; afterwards none of them has been sprung."""
    home = tmp_path / "home"
    home.mkdir()
    canary = home / "PW"
    for name in ("evil_here.py", "other.yaml", "evil"):
        (home / name).write_text(EVIL.format(canary=str(canary)) if name.endswith(".py") else "energy: evil_here.Net")
    array = np.array([Pickled(str(canary))], dtype=object)
    for path in (home / "evil.npy", home / "evil.pt", tmp_path / "evil.npy"):
        with path.open("wb") as file:
            np.save(file, array, allow_pickle=True)
    monkeypatch.chdir(home)
    yield home
    assert not canary.exists()
    assert not {"evil_here", "evil_run", "run.evil_run", "antigravity"} & set(sys.modules)


@pytest.fixture
def refused(hostile, adance, monkeypatch):
    monkeypatch.chdir(hostile)  # the command line is called in an empty folder otherwise

    def call(*argv):
        answer = adance(*argv)
        assert answer.status == 2, answer
        assert answer.error.startswith(f"adance {argv[0]}: error: ")
        return answer.error

    return call


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    from adance.cli import main

    folder = tmp_path_factory.mktemp("trained") / "run"
    options = "--energy.hidden [4] --objective.sampler Langevin --objective.sampler.steps 1 --objective.buffer 32"
    argv = [*options.split(), "--objective.pool", "16", "--batch_size", "16", "--steps", "1", "--quiet"]
    assert main(["train", *argv, "--device", "cpu", "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("text", CONFIGS.values(), ids=CONFIGS)
def test_a_config(text, refused, hostile):
    (hostile / "hostile.yaml").write_text(text)
    before = sorted(hostile.rglob("*"))
    refused("train", "--config", "hostile.yaml", "--device", "cpu", "--quiet", "--out", "out")
    if text not in map(CONFIGS.get, WHEN_TRAINED):
        refused("sweep", "--config", "hostile.yaml", "--over", "seed=0", "--out", "out")
    assert [path for path in sorted(hostile.rglob("*")) if "out" not in path.parts] == before


@pytest.mark.parametrize(("old", "new"), RUNS.values(), ids=RUNS)
def test_a_run(old, new, refused, hostile, trained):
    shutil.copytree(trained, hostile / "run")
    (hostile / "run" / "evil_run.py").write_text(EVIL.format(canary=str(hostile / "PW")))
    path = hostile / "run" / "config.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    for argv in (
        ("sample", "run", "--n", "1"),
        ("score", "run", "digits"),
        ("evaluate", "run", "--quiet"),
        ("report", "run"),
        ("train", "--resume", "run", "--steps", "2", "--quiet"),
        ("train", "--config", "run/config.yaml", "--out", "out", "--quiet"),
    ):
        refused(*argv)
    for call in (library.load, Trainer.resume):
        with pytest.raises(InputError):
            call("run")


@pytest.mark.parametrize("value", ["evil_here.Net", "{class_path: os.system, init_args: {command: touch PW}}"])
def test_a_sweep(value, refused, hostile, adance):
    options = "--steps 1 --batch_size 16 --objective.sampler.steps 1 --objective.interval 1 --device cpu --out sweep"
    argv = ("sweep", "--over", "energy=MLP", *options.split())
    assert adance(*argv).status == 0
    path = hostile / "sweep" / "sweep.json"
    held = json.loads(path.read_text())
    for changed in (value, {"class_path": "os.system"}):
        held["runs"][0]["values"]["energy"] = changed
        path.write_text(json.dumps(held))
        refused(*argv)
    for settings in (f"energy: {value}", "a: &a [*a]", "!!python/object/apply:os.system ['touch PW']"):
        path.write_text(json.dumps({**held, "settings": settings}))
        refused(*argv)


@pytest.mark.parametrize(
    "option",
    [
        "--data=evil_here.Net",
        "--energy.hidden={class_path: evil_here.Net}",
        "--energy.init_args={hidden: {class_path: evil_here.Net}}",
        "--objective.sampler.steps={class_path: evil_here.Move}",
        "--objective.sampler={steps: {class_path: evil_here.Move}}",
        "--steps=evil_here.Net",
    ],
)
def test_a_class_that_is_typed_where_none_belongs(option, refused):
    refused("train", option, "--device", "cpu", "--out", "out")
