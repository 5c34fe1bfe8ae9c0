"""The energy that is trained if none is chosen."""

import numpy as np
import pytest
import torch

from adance import (
    BRM,
    FCE,
    MLP,
    NCE,
    AdaBRM,
    AdaNCE,
    ConditionalNCE,
    MaximumLikelihood,
    RankingNCE,
    ScoreMatching,
    Tilted,
    load,
)
from adance.__main__ import main
from adance.commands.choices import read
from adance.objectives.default_energy import default_energy

IMAGE, PLANE, ROWS = (1, 8, 8), (2,), (6,)


@pytest.mark.parametrize("noise", ["mixture", "student", "kde", "cover", "flow"])
@pytest.mark.parametrize("make", [NCE, BRM, RankingNCE])
def test_a_fitted_noise_is_tilted(make, noise):
    objective = make(noise=noise)
    assert isinstance(default_energy(IMAGE, objective), MLP)
    for shape in (PLANE, ROWS):
        energy = default_energy(shape, objective)
        assert isinstance(energy, Tilted)
        x = torch.randn(200, *shape, generator=torch.Generator().manual_seed(0))
        objective.build(energy, x, batch_size=50, generator=torch.Generator().manual_seed(0))
        # f starts at softplus(b) − b, so that the model is the noise
        assert float(energy.net(x).detach().abs().max()) < 0.01


@pytest.mark.parametrize(
    "objective",
    [NCE(), NCE("uniform"), FCE(), ConditionalNCE(), MaximumLikelihood(), ScoreMatching()],
    ids=lambda objective: type(objective).__name__,
)
def test_other_objectives_get_an_mlp(objective):
    assert all(isinstance(default_energy(shape, objective), MLP) for shape in (IMAGE, PLANE, ROWS))


@pytest.mark.parametrize("objective", [AdaNCE(), AdaBRM()], ids=["AdaNCE", "AdaBRM"])
def test_adaptive_noise_tilts_a_mixture_for_more_than_three_columns(objective):
    kinds = {shape: type(default_energy(shape, objective)) for shape in (IMAGE, PLANE, (3,), (4,), ROWS)}
    assert kinds == {IMAGE: MLP, PLANE: MLP, (3,): MLP, (4,): Tilted, ROWS: Tilted}


def test_the_command_line_chooses_it_and_writes_it_down(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(200, 6))
    np.savetxt("rows.csv", rows, delimiter=",", header="a,b,c,d,e,f", comments="")
    options = ["--data", "rows.csv", "--steps", "2", "--batch_size", "16", "--quiet"]
    main(["train", "--print_config", *options])
    printed = capsys.readouterr().out
    assert "energy: auto" in printed
    (tmp_path / "printed.yaml").write_text(printed, encoding="utf-8")
    main(["train", *options, "--out", "one"])
    main(["train", "--config", "printed.yaml", "--quiet", "--out", "two"])
    one, two = load("one"), load("two")
    assert isinstance(one.energy, Tilted)
    assert one.config["energy"]["init_args"] == {"net": None, "base": "mixture", "bound": 5.0}
    assert one.config == two.config


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        (["--energy.hidden", "[4]"], "adance.MLP"),
        (["--energy", "auto", "--energy.hidden", "[4]"], "adance.MLP"),
        (["--config", "auto.yaml", "--energy.hidden", "[4]"], "adance.MLP"),
        (["--config", "hidden.yaml"], "adance.MLP"),
        (["--config", "auto.yaml", "--energy", "ResNet"], "adance.ResNet"),
        (["--config", "auto.yaml"], "auto"),
        (["--energy", "MLP", "--energy", "auto"], "auto"),
    ],
    ids=" ".join,
)
def test_settings_after_auto_are_those_of_an_mlp(arguments, chosen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "auto.yaml").write_text("energy: auto\nsteps: 3\n", encoding="utf-8")
    (tmp_path / "hidden.yaml").write_text("energy: {hidden: [4]}\n", encoding="utf-8")
    choices = read(arguments)
    found = choices.energy.describe(choices.args)
    assert (found if isinstance(found, str) else found["class_path"]) == chosen


def test_a_sweep_over_the_default_energy_has_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--steps", "1", "--batch_size", "16", "--quiet", "--objective.sampler.steps", "1", "--sample_every", "0"]
    main(["sweep", *options, "--over", "seed=0,1", "--out", "swept"])
    main(["report", "swept"])
    assert "auto" in (tmp_path / "swept" / "report.html").read_text(encoding="utf-8")
