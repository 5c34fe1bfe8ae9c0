import pytest
import torch
from torch import nn

from adance import remember, trust
from adance.cli import main
from adance.energies import MLP
from adance.errors import DivergedError
from adance.objectives import (
    BRM,
    NCE,
    AdaNCE,
    ConditionalNCE,
    DenoisingScoreMatching,
    RankingNCE,
    ScoreMatching,
)
from adance.samplers import MALA
from adance.training import Settings, Trainer, load

SICK = '''
import torch
from torch import nn


class Sick(nn.Module):
    """Breaks in the forward of training step ``bad``."""

    def __init__(self, event_shape, bad=13, how="nan"):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.LazyLinear(8), nn.SiLU(), nn.Linear(8, 1))
        self.net(torch.zeros(1, *event_shape))
        self.bad, self.how, self.forwards = bad, how, 0

    def forward(self, x):
        energies = self.net(x).squeeze(1)
        if self.training and torch.is_grad_enabled():
            self.forwards += 1
            if self.forwards == self.bad or (self.how == "nan on" and self.forwards >= self.bad):
                return self.spoilt(energies)
        return energies

    def spoilt(self, energies):
        first = torch.arange(len(energies)) < len(energies) // 2
        if self.how in ("nan", "nan on"):
            return energies * float("nan")
        if self.how == "one":
            return torch.where(torch.arange(len(energies)) == 3, float("nan"), energies)
        if self.how == "gap":
            return energies + 2e4 * first
        return energies + torch.sqrt(0 * energies)  # finite, of infinite slope
'''


@pytest.fixture
def sick(tmp_path, monkeypatch):
    (tmp_path / "sick_energy.py").write_text(SICK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "sick_energy", raising=False)
    import sick_energy

    trust("sick_energy")

    def make(bad, how="nan"):
        torch.manual_seed(4)
        energy = sick_energy.Sick((3,), bad, how)
        remember(energy, {"event_shape": [3], "bad": bad, "how": how})
        return energy

    return make


def trainer_of(energy, points, out, objective=None, **settings):
    numbers = {"steps": 40, "batch_size": 16, "checkpoint_every": 5, "log_every": 50, "lr": 1e-2, **settings}
    return Trainer(energy, objective or NCE(), points, Settings(**numbers), out, show_progress=False)


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("how", ["nan", "nan on", "one", "gap", "slope"])
@pytest.mark.parametrize("look_every", [1, 20])
def test_the_true_step_is_named_and_the_weights_are_those_before_it(how, look_every, sick, points, tmp_path):
    well = trainer_of(sick(None), points, tmp_path / "well", steps=12)
    well.fit()
    every = 5 if look_every == 1 else 1000
    ill = trainer_of(sick(13, how), points, tmp_path / "ill", checkpoint_every=every)
    ill.look_every = look_every
    with pytest.raises(DivergedError) as raised:
        ill.fit()
    good = 10 if look_every == 1 else 0
    message = str(raised.value)
    assert "diverged at step 13:" in message
    assert message.endswith(f"last good checkpoint: {tmp_path / 'ill' / 'checkpoints' / f'{good:08d}'}")
    assert ill.step == (13 if look_every == 1 else 20)
    assert same(ill.energy.state_dict(), well.energy.state_dict())
    assert torch.equal(ill.objective.log_ratio.log_z, well.objective.log_ratio.log_z)
    assert same(ill.optimizers.tensors()["optimizer"], well.optimizers.tensors()["optimizer"])

    run = load(tmp_path / "ill")
    assert run.step == good
    assert all(value.isfinite().all() for value in run.energy.state_dict().values())
    assert run.score(torch.zeros(2, 3)).isfinite().all()


def test_chains_of_a_noise_that_adapts_are_watched_too(sick, points, tmp_path):
    objective = AdaNCE(MALA(steps=2, step_size=0.01), interval=4, pool=16, buffer=32)
    with pytest.raises(DivergedError, match="diverged at step 7:"):
        trainer_of(sick(7), points, tmp_path / "ill", objective).fit()


def test_a_checkpoint_is_never_written_at_or_after_the_bad_step(sick, points, tmp_path):
    """The bad step is a checkpoint's, between two looks."""
    ill = trainer_of(sick(10, "slope"), points, tmp_path / "ill", checkpoint_every=5)
    ill.look_every = 20
    with pytest.raises(DivergedError, match="diverged at step 10:"):
        ill.fit()
    assert load(tmp_path / "ill").step == 5


def test_the_limit_is_that_of_the_settings(sick, points, tmp_path):
    with pytest.raises(DivergedError, match="differ by more than 100,"):
        trainer_of(sick(3, "gap"), points, tmp_path / "low", energy_limit=100).fit()
    assert trainer_of(sick(3, "gap"), points, tmp_path / "high", energy_limit=1e9, steps=5).fit().step == 5


def test_the_command_ends_with_status_3_and_one_line(sick, points, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{a},{b},{c}\n" for a, b, c in points.train.tolist())
    (tmp_path / "rows.csv").write_text(rows)
    argv = "train --data rows.csv --energy sick_energy.Sick --energy.bad 13 --objective NCE --batch_size 16 --out run"
    assert main([*argv.split(), "--checkpoint_every", "5", "--quiet", "--device", "cpu"]) == 3
    out, error = capsys.readouterr()
    assert out == ""
    assert len(error.splitlines()) == 1
    assert error.startswith("adance train: error: training diverged at step 13: ")
    assert error.strip().endswith("last good checkpoint: run/checkpoints/00000010")
    assert load("run").step == 10


def test_an_interrupt_after_the_bad_step_writes_no_checkpoint(sick, points, tmp_path, monkeypatch):
    import signal

    ill = trainer_of(sick(3), points, tmp_path / "ill", checkpoint_every=1000)
    ill.look_every = 1000
    optimize = ill._optimize

    def interrupted_at_five(step):
        if step == 5:
            signal.raise_signal(signal.SIGINT)
        return optimize(step)

    monkeypatch.setattr(ill, "_optimize", interrupted_at_five)
    with pytest.raises(DivergedError, match="diverged at step 3:"):
        ill.fit()
    assert load(tmp_path / "ill").step == 0


@pytest.mark.parametrize("kind", ["exact", "hutchinson", "finite_difference"])
def test_score_matching_that_grows_without_bound_has_diverged(kind, points, tmp_path):
    torch.manual_seed(0)
    ill = trainer_of(MLP((3,), [16]), points, tmp_path / "ill", ScoreMatching(kind), lr=10.0)
    with pytest.raises(DivergedError, match="or the loss or the mean energy of data is more than 10000 times its size"):
        ill.fit()


@pytest.mark.parametrize("make", [ScoreMatching, DenoisingScoreMatching, NCE, RankingNCE, ConditionalNCE, BRM])
def test_healthy_training_is_no_divergence(make, points, tmp_path):
    torch.manual_seed(0)
    assert trainer_of(MLP((3,), [16]), points, tmp_path / "run", make(), steps=60).fit().step == 60


def test_what_the_loss_was_at_first_is_kept_when_resuming(points, tmp_path):
    torch.manual_seed(0)
    first = trainer_of(MLP((3,), [16]), points, tmp_path / "run", ScoreMatching(), steps=5)
    first.fit()
    again = Trainer.resume(tmp_path / "run", data=points, steps=6, show_progress=False)
    assert torch.equal(again.guard.scales, first.guard.scales)
    assert again.guard.scales.min() >= 1


def test_a_loss_without_noise_is_watched(points, tmp_path):
    """An objective may contrast data with nothing."""
    from adance.objectives import LossOutput, Objective

    class Mean(Objective):
        def loss(self, energy, x, generator=None, condition=None):
            energies = energy(x)
            return LossOutput(energies.mean(), energies.detach(), energies.detach()[:0], dict)

    torch.manual_seed(0)
    energy = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    remember(energy, {})
    assert trainer_of(energy, points, tmp_path / "run", Mean(), steps=3, log_every=50).fit().step == 3
