from dataclasses import replace

import pytest
import torch

from adance import MLP, Settings, Trainer, load_data, trust
from adance.cli import main
from adance.commands.choices import read
from adance.errors import DivergedError, InputError
from adance.noises import Flow
from adance.objectives import ACE, BRM, FCE, AdaBRM, AdaNCE, ConditionalNCE, RankingNCE, Recipe
from adance.training import checkpoint as ckpt

DATA = load_data("8gaussians")

MAKE = {
    "ACE": lambda: ACE(hidden=(8,), marginal_draws=8),
    "ACE reinforce": lambda: ACE(hidden=(8,), marginal_draws=8, gradient="reinforce"),
    "FCE": lambda: FCE(hidden=(8,), transforms=2, fit_steps=3),
    "fixed flow": lambda: BRM("hellinger", Flow(hidden=(8,), fit_steps=3)),
    "mixture of snapshots": lambda: AdaNCE(interval=3, pool=48, buffer=64, snapshots=3),
    "refreshed when served": lambda: AdaNCE(interval="auto", ratio_temperature=1e-3, center=True, buffer=128),
    "refreshed by the chains' share": lambda: AdaNCE(interval="auto", buffer=128),
    "rejuvenated": lambda: AdaNCE(interval=4, pool=32, buffer=64, rejuvenation=0.1),
    "AdaBRM": lambda: AdaBRM("kl", interval=4, pool=32, buffer=64),
    "ranking": lambda: RankingNCE("uniform", 3),
    "conditional": lambda: ConditionalNCE(noises=2),
}


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    monkeypatch.setattr(Trainer, "_save_samples", lambda self: None)


def settings(steps, **more):
    return Settings(**({"steps": steps, "batch_size": 16, "ema": 0.9, "log_every": 5} | more))


def trainer(objective, out, steps, **more):
    torch.manual_seed(0)
    return Trainer(MLP((2,), (8,)), objective, DATA, settings(steps, **more), out, device="cpu", show_progress=False)


def everything(made):
    states = {"energy": made.energy.state_dict(), "objective": made.objective.state_dict(), **made.optimizers.tensors()}
    states["average"] = made.average.energy.state_dict()
    return {f"{part}.{name}": value for part, state in states.items() for name, value in state.items()}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE.keys())
def test_a_run_that_stopped_and_went_on_equals_one_that_did_not(make, tmp_path):
    whole = trainer(make(), tmp_path / "whole", 17)
    whole.fit()
    trainer(make(), tmp_path / "parts", 7).fit()
    parts = Trainer.resume(tmp_path / "parts", steps=17, device="cpu", show_progress=False)
    parts.fit()
    one, two = everything(whole), everything(parts)
    assert one.keys() == two.keys()
    assert [name for name in one if not torch.equal(one[name], two[name])] == []


def test_the_adversary_goes_uphill_and_the_model_downhill(tmp_path):
    made = trainer(FCE(hidden=(8,), transforms=2, fit_steps=3), tmp_path / "r", 1, adversary_lr=3e-4, lr=1e-4)
    x = DATA.batch(torch.arange(64))
    value = made.objective.loss(made.energy, x, torch.Generator().manual_seed(1)).value
    sides = {"optimizer": made.energy.parameters(), "adversary": made.objective.adversary_parameters()}
    for (name, parameters), sign, lr in zip(sides.items(), (-1, 1), (1e-4, 3e-4), strict=True):
        parameters = list(parameters)
        for p, g in zip(parameters, torch.autograd.grad(value, parameters, retain_graph=True), strict=True):
            p.grad = g.clone()
        before = [p.detach().clone() for p in parameters]
        slopes = [p.grad.clone() for p in parameters]
        made.optimizers.step(1, torch.zeros(()))
        moved = [p.detach() - b for p, b in zip(parameters, before, strict=True)]
        assert sum((m * g).sum() for m, g in zip(moved, slopes, strict=True)) * sign > 0
        # Adam's first step is the learning rate wherever the gradient is not tiny
        assert max(m.abs().max() for m in moved).item() == pytest.approx(lr, rel=1e-3)
        assert name in made.optimizers.by_name
        made.optimizers.zero_grad()


def test_the_adversary_has_a_file_of_its_own_and_no_other_objective(tmp_path):
    for name, make in (("FCE", MAKE["FCE"]), ("ranking", MAKE["ranking"])):
        made = trainer(make(), tmp_path / name, 2)
        made.fit()
        files = {path.name for path in made.folder.checkpoint(2).iterdir()}
        assert ("adversary.safetensors" in files) == (name == "FCE")
    path = tmp_path / "FCE" / "checkpoints" / "00000002"
    assert len(ckpt.load_tensors(path / "adversary.safetensors")) > 0
    (path / "adversary.safetensors").unlink()
    with pytest.raises(InputError, match=r"adversary\.safetensors"):
        Trainer.resume(tmp_path / "FCE", device="cpu", show_progress=False)


@pytest.mark.parametrize("where", ["loss", "adversary"])
def test_a_bad_step_moves_neither_side(where, tmp_path, monkeypatch):
    made = trainer(MAKE["FCE"](), tmp_path / "r", 20)
    real, states = made.objective.loss, {}

    def loss(energy, x, generator=None, condition=None):
        out = real(energy, x, generator, condition)
        states["before"] = [p.detach().clone() for p in (*energy.parameters(), *made.objective.parameters())]
        if made.step + 1 == 6:
            bad = out.value * float("nan")
            if where == "adversary":  # the value is finite, the flow's gradient is not
                phi = made.objective.adversary_parameters()[0]
                bad = out.value + (0 * (phi - phi.detach()).sum()).sqrt()
            return replace(out, value=bad)
        return out

    monkeypatch.setattr(made.objective, "loss", loss)
    with pytest.raises(DivergedError, match="step 6"):
        made.fit()
    after = [*made.energy.parameters(), *made.objective.parameters()]
    assert all(torch.equal(b, a) for b, a in zip(states["before"], after, strict=True))
    assert all(value.isfinite().all() for value in everything(made).values())


def test_adversary_lr_must_be_positive():
    with pytest.raises(InputError, match="adversary_lr"):
        Settings(adversary_lr=0.0)


@pytest.mark.parametrize(
    "arguments",
    [
        ["NCE", "--objective.noise=Flow", "--objective.noise.fit_steps=7"],
        ["BRM", "--objective.psi=least_squares", "--objective.noise=mixture"],
        ["BRM", "--objective.psi=Power", "--objective.psi.beta=0.3"],
        ["RankingNCE", "--objective.noises=5"],
        ["ConditionalNCE", "--objective.bandwidth=0.1"],
        ["AdaNCE", "--objective.snapshots=3"],
        ["AdaBRM", "--objective.psi=hellinger", "--objective.interval=3"],
        ["AdaBRM", "--objective.psi=Custom", "--objective.psi.psi=torch.square"],
        ["ACE", "--objective.gradient=reinforce"],
        ["FCE", "--objective.kind=affine", "--objective.fit_steps=3"],
    ],
    ids=" ".join,
)
def test_every_objective_is_made_from_the_command_line_and_from_its_config(arguments, tmp_path):
    trust("torch")  # one Ψ is a function of torch
    made = read(["--objective", *arguments]).make_objective()
    assert isinstance(made, Recipe)
    assert type(made).__name__ == arguments[0]
    run = trainer(made, tmp_path / "r", 1)
    run.fit()
    again = Trainer.resume(tmp_path / "r", steps=2, device="cpu", show_progress=False)
    assert type(again.recipe) is type(made)
    again.fit()


def test_a_name_that_is_none_is_one_readable_line(capsys, tmp_path):
    for arguments, names in (
        (
            ["NCE", "--objective.noise=cauchy"],
            "no noise or density is called 'cauchy'; give one of gaussian, uniform, mixture, student, kde, cover, flow",
        ),
        (["BRM", "--objective.psi=sine"], "no bregman is called 'sine'; give one of logistic, kl, least_squares,"),
    ):
        assert main(["train", "--objective", *arguments, "--out", str(tmp_path / "r")]) == 2
        said = capsys.readouterr().err
        assert names in said
        assert "Union" not in said
        assert said.count("\n") == 1
