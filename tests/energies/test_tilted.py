import math

import pytest
import torch
from torch import nn

import adance
from adance.energies import ClassConditionalMLP, Gaussian, KernelDensity, StudentT, Tilted
from adance.errors import InputError
from adance.noises import FixedNoise, Flow
from adance.objectives import NCE, Contrastive
from adance.randomness import fork_rng

DATA = torch.randn(500, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 0.5, 2.0]) + 1
FLOW = Flow(transforms=1, hidden=(4,), fit_steps=2)
LAW = Gaussian(torch.ones(3), torch.tensor([1.0, 0.5, 2.0]))


def seed(number=1):
    return torch.Generator().manual_seed(number)


@pytest.mark.parametrize("noise", ["gaussian", "mixture", "student", "kde", "cover"])
def test_before_training_it_is_the_base_and_log_z_is_0(noise):
    energy = Tilted((3,), {"hidden": [8]})
    objective = NCE(noise).build(energy, DATA, generator=seed())
    objective.start(energy, DATA, seed())
    assert torch.equal(energy(DATA), -energy.base.log_prob(DATA))
    assert objective.log_normalizer() == 0
    out = objective.loss(energy, DATA[:100], seed())
    # r = 0 everywhere: the loss of guessing, divided by the curvature ½
    assert math.isclose(out.value.item(), 4 * math.log(2), rel_tol=1e-6)


def test_it_learns_from_the_first_step():
    energy = Tilted((3,), {"hidden": [8]}, LAW)
    NCE(LAW).build(energy, DATA).loss(energy, DATA[:100], seed()).value.backward()
    assert (energy.net.net[-1].weight.grad != 0).all()


def test_at_the_truth_the_gradient_is_zero_in_the_mean():
    energy = Tilted((3,), {"hidden": [8]}, LAW)
    objective, rows = NCE(LAW).build(energy, DATA), []
    for number in range(200):
        energy.zero_grad()
        objective.loss(energy, LAW.sample(50, seed(number)), seed(1000 + number)).value.backward()
        rows.append(energy.net.net[-1].weight.grad.flatten())
    every = torch.stack(rows)
    z = every.mean(0) / (every.std(0) / math.sqrt(len(every)))
    assert z.abs().max() < 4


def test_the_base_is_not_evaluated_and_the_loss_is_that_of_both_energies():
    energy = Tilted((3,), adance.MLP((3,), (8,), base=False), LAW)
    nn.init.normal_(energy.net.net[-1].weight)
    objective = NCE(LAW).build(energy, DATA)
    other = NCE(Gaussian(LAW.mean, LAW.std)).build(energy, DATA)  # the same law, but another object
    expected = other.loss(energy, DATA[:50], seed()).value
    tilted = objective.loss(energy, DATA[:50], seed())
    torch.testing.assert_close(tilted.value, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(tilted.metrics["energy_data"], energy(DATA[:50]).mean())

    class Blind(Gaussian):
        def log_prob(self, x):
            raise AssertionError("the base was evaluated")

    blind = Blind(LAW.mean, LAW.std)
    energy.base = blind
    assert torch.equal(NCE(blind).build(energy, DATA).loss(energy, DATA[:50], seed()).value, tilted.value)


@pytest.mark.parametrize("objective", [adance.BRM("hellinger"), adance.RankingNCE(), NCE("uniform"), NCE(LAW)])
def test_other_objectives_and_noises_take_it(objective):
    energy = Tilted((3,), {"hidden": [8]})
    built = objective.build(energy, DATA, generator=seed())
    assert isinstance(built, Contrastive)
    shared = built.noise.density is energy.base
    assert shared == (not isinstance(objective, NCE))
    assert built.loss(energy, DATA[:20], seed()).value.isfinite()


def test_the_noise_is_not_replaced_by_another_base():
    energy = Tilted((3,), {"hidden": [8]}, LAW)
    noise = NCE("gaussian").build(energy, DATA).noise
    assert isinstance(noise, FixedNoise)
    assert noise.density is not energy.base


def test_chains_start_from_the_base(train_tilted):
    run = train_tilted(adance.AdaNCE(interval=5), base="student")
    law = run.energy.base
    assert isinstance(law, StudentT)
    assert torch.equal(run.starts(100, "noise", seed(3)), law.sample(100, seed(3)))


@pytest.mark.parametrize("noise", ["gaussian", "mixture", "student", "kde", "cover", FLOW])
def test_a_run_is_opened_without_its_data(noise, train_tilted, tmp_path):
    run = train_tilted(NCE(noise))
    again = adance.load(tmp_path / "run")
    x = torch.randn(50, 3)
    assert torch.equal(again.score(x), run.score(x))
    assert torch.equal(again.log_density(run.score(x)), run.log_density(run.score(x)))
    assert torch.equal(again.starts(9, "noise", seed()), run.starts(9, "noise", seed()))


@pytest.mark.parametrize("noise", ["kde", FLOW])
def test_resuming_is_exact(noise, train_tilted, tmp_path, points):
    whole = train_tilted(NCE(noise), steps=12)
    half = train_tilted(NCE(noise), steps=6, out="half")
    resumed = adance.Trainer.resume(half.folder.path, data=points, steps=12, show_progress=False)
    assert resumed.objective.noise.density is resumed.state.energy.base
    resumed = resumed.fit()
    for name, value in whole.energy.state_dict().items():
        assert torch.equal(value, resumed.energy.state_dict()[name]), name


def test_the_kernel_density_s_centers_are_in_the_checkpoint(train_tilted, tmp_path):
    run = train_tilted(NCE("kde"))
    assert isinstance(run.energy.base, KernelDensity)
    assert torch.equal(adance.load(tmp_path / "run").energy.base.centers, run.energy.base.centers)


class Linear(nn.Module):
    """−a·x₀: with it, ``p_base(x) exp(−f(x))`` grows along the first axis of any base with heavy tails."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(x).squeeze(1)


def test_a_bound_keeps_the_density_near_the_base():
    bounded = Tilted((3,), Linear(), StudentT.fitted(DATA), bound=5.0)
    with torch.no_grad():
        bounded.net.net.layer.weight[:] = torch.tensor([-2.0, 0, 0])
    for x in (DATA, 1e3 * DATA, -1e3 * DATA):
        f = bounded.net(x)
        assert f.min() >= -5
        torch.testing.assert_close(f, nn.functional.softplus(-2 * x[:, 0] + 5) - 5)
        torch.testing.assert_close(bounded(x), f - bounded.base.log_prob(x))


def test_a_run_with_a_bound_is_opened_again(train_tilted, points, tmp_path):
    energy = Tilted((3,), {"hidden": [8]}, "gaussian", bound=5.0)
    settings = adance.Settings(steps=6, batch_size=32, sample_every=0)
    run = adance.Trainer(energy, adance.AdaNCE(), points, settings, tmp_path / "b", show_progress=False).fit()
    opened = adance.load(tmp_path / "b")
    assert torch.equal(opened.score(DATA), run.score(DATA))
    assert opened.energy.net.bound == 5.0


def test_what_it_refuses():
    for bound in (0.0, -1.0, math.nan, 1e30):
        with pytest.raises(InputError, match="bound must be"):
            Tilted((3,), bound=bound)
    with pytest.raises(InputError, match="not fitted yet"):
        Tilted((3,))(DATA)
    with pytest.raises(InputError, match=r"torch\.nn\.Linear"):
        Tilted((3,), nn.Flatten())
    with pytest.raises(InputError, match="without spectral normalization"):
        Tilted((3,), {"spectral_norm": True})
    with pytest.raises(InputError, match="must not be conditional"):
        Tilted((3,), ClassConditionalMLP((3,), 3))


@pytest.fixture
def points():
    return adance.load_data(DATA.numpy())


@pytest.fixture
def train_tilted(points, tmp_path):
    def train(objective, base=None, steps=6, out="run"):
        with fork_rng(0):
            energy = Tilted((3,), {"hidden": [8]}, base)
        settings = adance.Settings(steps=steps, batch_size=32, sample_every=0, log_every=3)
        return adance.Trainer(energy, objective, points, settings, tmp_path / out, show_progress=False).fit()

    return train
