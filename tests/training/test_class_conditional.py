"""Class-conditional energies E(x | y): trained on the labels of a data set, sampled by class."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from adance import NCE, AdaNCE, InputError, Settings, Trainer, load, load_data
from adance.data import Dataset, Identity
from adance.energies import ClassConditionalMLP, freeze, given
from adance.objectives import ContrastiveDivergence, MaximumLikelihood, ScoreMatching
from adance.samplers import MALA, Langevin
from adance.training.data_checks import check_energy


def classes(n, seed):
    """Three classes: N(-3, ½²), N(0, ½²) and N(3, 1)."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=generator)
    std = torch.tensor([0.5, 0.5, 1.0])[y, None]
    return torch.randn(n, 1, generator=generator) * std + 3.0 * (y[:, None] - 1), y


@pytest.fixture
def data():
    (train, train_labels), (test, test_labels) = classes(3000, 0), classes(400, 1)
    return Dataset("classes", "vector", train, test, Identity(), train_labels, test_labels)


def of_all_classes(energy, x):
    return torch.stack([energy(x, torch.full((len(x),), label)) for label in range(energy.classes)])


def settings(steps=300):
    return Settings(steps=steps, batch_size=128, lr=2e-3, ema=0.98, decay_after=100, log_every=100)


@pytest.mark.parametrize(
    "objective",
    [
        lambda: AdaNCE(MALA(10, 0.3), interval=5, ratio_temperature=1.0, margin=0.0),
        lambda: MaximumLikelihood(MALA(10, 0.3)),
        lambda: ContrastiveDivergence(5, MALA(20, 0.3)),
        lambda: ScoreMatching(),
    ],
    ids=["AdaNCE", "MaximumLikelihood", "ContrastiveDivergence", "ScoreMatching"],
)
def test_each_class_is_learned_and_drawn(objective, data, tmp_path):
    energy = ClassConditionalMLP((1,), classes=3, hidden=(32, 32))
    Trainer(energy, objective(), data, settings(), tmp_path / "run", show_progress=False).fit()
    assert torch.equal(energy(data.test), of_all_classes(energy, data.test).amin(0))
    run = load(tmp_path / "run")
    grid = torch.linspace(-6, 6, 1201)[:, None]
    for label, mean in enumerate([-3, 0, 3]):
        p = torch.softmax(-run.of_class(label).score(grid), 0)
        assert float((p * grid[:, 0]).sum()) == pytest.approx(mean, abs=0.25)
        # starts are at data of all classes: contrastive divergence says nothing of the way there from noise
        if run.buffer is not None:
            x = run.of_class(label).sample(300, steps=100)
            assert float(x.median()) == pytest.approx(mean, abs=0.4)
    every = torch.stack([run.of_class(label).score(data.test) for label in range(3)])
    torch.testing.assert_close(run.score(data.test), every.amin(0))


def built(recipe, energy, label, generator):
    """The objective for 12 rows ``(12, 2)``."""
    return recipe.build(energy, torch.randn(12, 2), batch_size=4, generator=generator, condition=label)


@pytest.mark.parametrize("start", ["noise", "data", "persistent", "rejuvenated"])
@pytest.mark.parametrize("settings", [{}, {"pool": 0}, {"pool": 12, "snapshots": 2}, {"interval": 1}])
def test_noise_is_evaluated_at_the_labels_that_it_was_drawn_at(start, settings, generator):
    # a chain at label y ends at y itself, where the energy of any other label is larger
    class At(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(1.0))

        def forward(self, x, condition):
            return self.scale * (x - condition[:, None]).square().sum(1)

    energy = At()
    recipe = AdaNCE(Langevin(20, 0.5, noise_std=0), start=start, ratio_temperature=1.0, **{"interval": 2} | settings)
    objective = built(recipe, energy, torch.tensor([0]), generator)
    for step in range(1, 9):
        batch = torch.randint(3, (4,), generator=generator)
        out = objective.loss(energy, torch.randn(4, 2, generator=generator), generator, batch)
        assert out.energy_noise.max() < 1e-8
        assert (out.metrics["ratio_noise"] - out.metrics["ratio_data"]).abs() < 1e-4
        objective.after_step(energy, step, out)


def test_a_pool_has_the_labels_of_a_batch_each_equally_often(generator):
    energy, recipe = ClassConditionalMLP((2,), classes=3, hidden=(4,)), AdaNCE(MALA(1), interval=3, pool=8)
    noise, x = built(recipe, energy, torch.tensor([0]), generator).noise, torch.randn(4, 2)
    batches = torch.tensor([[2, 1, 1, 0], [0, 0, 0, 0]])  # the second batch is contrasted with the same pool
    drawn = [noise.sample(4, x, generator, batch).condition for batch in batches]
    assert torch.cat(drawn).bincount().tolist() == [2, 4, 2]


def test_conditions_at_only_one_place_are_refused(generator):
    energy, labels = ClassConditionalMLP((2,), classes=2, hidden=(4,)), torch.tensor([0, 1, 1, 0])
    for at_build, at_loss in ((labels[:1], None), (None, labels)):
        objective = built(AdaNCE(MALA(1)), energy, at_build, generator)
        with pytest.raises(InputError, match="only one of build"):
            objective.loss(energy, torch.randn(4, 2), generator, at_loss)
    objective = built(AdaNCE(MALA(1)), energy, labels[:1], generator)
    for other in (labels.float(), labels[:, None]):
        with pytest.raises(InputError, match="but build"):
            objective.loss(energy, torch.randn(4, 2), generator, other)


@pytest.mark.parametrize("pool", [0, 12, 24])
def test_chains_from_data_have_the_condition_of_their_datum(pool, generator):
    energy, z = ClassConditionalMLP((1,), classes=6, hidden=(4,)), torch.arange(6)
    recipe = AdaNCE(Langevin(1, 1e-9, noise_std=0), start="data", noises=2, pool=pool, interval=2)
    objective = recipe.build(energy, z[:, None] / 6, batch_size=6, generator=generator, condition=z[:1])
    sample = objective.noise.sample(12, z[:, None] / 6, generator, z.repeat_interleave(2))
    torch.testing.assert_close(sample.x[:, 0] * 6, sample.condition.float())


def test_conditions_that_are_learned_keep_their_graph(generator):
    encoder, labels = nn.Embedding(3, 1), torch.tensor([0, 1, 2, 0])

    class Near(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(1.0))

        def forward(self, x, condition):
            return self.scale * (x - condition).square().sum(1)

    energy = Near()
    objective = built(AdaNCE(MALA(1), interval=3), energy, encoder(labels[:1]).detach(), generator)
    for step in (1, 2, 3):
        out = objective.loss(energy, torch.randn(4, 2), generator, encoder(labels))
        out.value.backward()
        objective.after_step(energy, step, out)
    assert encoder.weight.grad.abs().sum() > 0


def test_the_energy_of_one_class_stays_of_it(data, tmp_path):
    energy = ClassConditionalMLP((1,), classes=3, hidden=(8,))
    run = Trainer(energy, MaximumLikelihood(MALA(1)), data, settings(1), tmp_path / "run", show_progress=False).fit()
    x, one = torch.randn(5, 1), run.of_class(2).energy
    frozen, before = freeze(one), one(x)
    assert torch.equal(given(run.energy, torch.tensor([1]))(x), run.energy(x, torch.full((5,), 1)))
    assert torch.equal(one(x), before)
    assert torch.equal(one(x), frozen(x))
    assert torch.equal(one(x), run.energy(x, torch.full((5,), 2)))
    assert not torch.allclose(one(x), run.energy(x, torch.full((5,), 1)))
    assert run.energy(x).le(one(x) + 1e-6).all()
    for label in (-1, 3):
        with pytest.raises(InputError, match=f"there is no class {label}; classes are 0 to 2"):
            run.of_class(label)
    with pytest.raises(InputError, match="classes must be at least 2, got 1"):
        ClassConditionalMLP((2,), classes=1)


def test_data_without_fitting_labels_are_refused(data, tmp_path):
    bare = Dataset("bare", "vector", data.train, data.test, Identity())
    for labeled, count, message in [
        (bare, 3, "bare has no labels, which ClassConditionalMLP needs as its condition"),
        (data, 2, "labels are 0 to 2, but the energy has classes 0 to 1"),
    ]:
        with pytest.raises(InputError, match=message):
            Trainer(ClassConditionalMLP((1,), count, (4,)), MaximumLikelihood(), labeled, settings(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_labels_of_held_out_rows_are_checked_before_the_first_step(data, tmp_path):
    def refused(energy, labels, message):
        changed = Dataset("classes", "vector", data.train, data.test, Identity(), data.train_labels, labels)
        with pytest.raises(InputError, match=message):
            Trainer(energy, MaximumLikelihood(), changed, settings(), tmp_path / "run")
        assert not (tmp_path / "run").exists()

    beyond = data.test_labels.clone()
    beyond[-1] = 12
    refused(
        ClassConditionalMLP((1,), 3, (4,)), beyond, "held-out labels are 0 to 12, but the energy has classes 0 to 2"
    )
    refused(OfLabel(), beyond, "the energy does not accept label 12 of the held-out rows of classes: ")
    refused(OfLabel(), None, "classes has no labels of held-out rows, which OfLabel needs as its condition")


def test_checking_labels_leaves_the_energy_as_one_forward_pass_does():
    data = load_data("digits")
    x = data.batch(torch.arange(2))
    checked = ClassConditionalMLP((1, 8, 8), hidden=(8, 8))  # normalized, so that training passes change it
    passed = copy.deepcopy(checked)
    check_energy(checked, x, data)
    given(passed, data.train_labels[:2])(x)
    assert checked.training
    for name, value in passed.state_dict().items():
        assert torch.equal(checked.state_dict()[name], value), name


def test_a_label_that_no_training_row_has(data, tmp_path):
    rare = data.test_labels.clone()
    rare[-1] = 7
    changed = Dataset("classes", "vector", data.train, data.test, Identity(), data.train_labels, rare)
    energy, out = ClassConditionalMLP((1,), 10, (4,)), tmp_path / "run"
    with (
        pytest.warns(UserWarning, match="held-out rows have labels that no training row has: 7"),
        pytest.warns(UserWarning, match="training rows of 3 of the 10 classes of ClassConditionalMLP"),
    ):
        run = Trainer(energy, MaximumLikelihood(MALA(1)), changed, settings(1), out, show_progress=False).fit()
    assert run.of_class(2).sample(2, steps=1).shape == (2, 1)
    for opened in (run, load(out)):
        with pytest.raises(InputError, match=r"no training row has class 7, .* use one of 0, 1, 2"):
            opened.of_class(7)


def test_a_resumed_run_is_the_run(data, tmp_path):
    def trainer(out, steps):
        torch.manual_seed(0)
        energy = ClassConditionalMLP((1,), 3, (8,))
        return Trainer(energy, AdaNCE(MALA(2), interval=3), data, settings(steps), tmp_path / out, show_progress=False)

    trainer("whole", 9).fit()
    trainer("parts", 4).fit()
    Trainer.resume(tmp_path / "parts", data, steps=9, show_progress=False).fit()
    for part in ("energy", "objective", "optimizer", "random"):
        whole, parts = (tmp_path / out / "checkpoints/00000009" / f"{part}.safetensors" for out in ("whole", "parts"))
        assert whole.read_bytes() == parts.read_bytes()


class OfLabel(nn.Module):
    """E(x | y) of one number and one of three classes."""

    def __init__(self):
        super().__init__()
        self.center = nn.Embedding(3, 1)

    def forward(self, x, condition):
        return (x - self.center(condition)).square().squeeze(1)


class OfClass(nn.Module):
    """E(x | y), which has no value without the image's label."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64 + 10, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, x, condition):
        label = nn.functional.one_hot(condition.long(), 10)
        return self.net(torch.cat([x.flatten(1), label.to(x)], 1)).squeeze(1)


@pytest.mark.parametrize(
    "objective",
    [lambda: MaximumLikelihood(Langevin(3, 1.0, 0.005)), lambda: AdaNCE(Langevin(3, 1.0, 0.005), interval=2)],
)
def test_any_energy_given_labels_is_trained_and_its_samples_drawn(objective, tmp_path):
    data = load_data("digits")
    trainer = Trainer(OfClass(), objective(), data, Settings(steps=4, batch_size=16), tmp_path / "run", profile=True)
    with pytest.warns(UserWarning, match="cannot rebuild the energy"):
        run = trainer.fit()
    assert (tmp_path / "run" / "samples" / "00000004.png").exists()
    assert "GFLOP/s" in trainer.profile_table
    labels = data.train_labels[:6]
    x = data.batch(torch.arange(6))
    of_labels = replace(run, energy=given(run.energy, labels))
    torch.testing.assert_close(of_labels.score(x), run.energy(x, labels))
    assert of_labels.sample(6, steps=2).shape == x.shape
    with pytest.raises(InputError, match="condition"):
        run.sample(6, steps=2)


def test_a_conditional_run_claims_no_density(data, tmp_path):
    run = Trainer(ClassConditionalMLP((1,), 3, (4,)), NCE(), data, settings(), tmp_path / "run", device="cpu").fit()
    energies = run.score(torch.zeros(2, 1))
    assert run.log_normalizer is not None
    assert run.log_density(energies) is None
    assert run.of_class(1).log_density(energies) is None
