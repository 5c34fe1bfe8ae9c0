"""A recipe leaves numbers open, resolves them for a setting, and builds independent objectives."""

import copy
from dataclasses import FrozenInstanceError

import pytest
import torch

from adance.configurable import build, describe
from adance.energies import MLP, ClassConditionalMLP
from adance.errors import InputError
from adance.noises import NeuralSampler
from adance.objectives import (
    ACE,
    BRM,
    FCE,
    NCE,
    AdaBRM,
    AdaNCE,
    ConditionalNCE,
    ContrastiveDivergence,
    DenoisingScoreMatching,
    MaximumLikelihood,
    PersistentCD,
    RankingNCE,
    Recipe,
    ScoreMatching,
    Setting,
)
from adance.samplers import MALA, Langevin

MAKERS = {
    "AdaNCE": AdaNCE,
    "AdaNCE, interval 20": lambda: AdaNCE(interval=20),
    "AdaNCE, margin": lambda: AdaNCE(margin=0.01),
    "AdaNCE, some of the sampler": lambda: AdaNCE({"steps": 2}),
    "AdaBRM": AdaBRM,
    "NCE": NCE,
    "BRM": BRM,
    "RankingNCE": RankingNCE,
    "ConditionalNCE": ConditionalNCE,
    "ACE": lambda: ACE(hidden=(4,), marginal_draws=4),
    "FCE": lambda: FCE(transforms=2, hidden=(4,), fit_steps=2),
    "MaximumLikelihood": MaximumLikelihood,
    "ContrastiveDivergence": lambda: ContrastiveDivergence(2),
    "PersistentCD": lambda: PersistentCD(2),
    "PersistentCD, own steps": PersistentCD,
    "ScoreMatching": ScoreMatching,
    "DenoisingScoreMatching": lambda: DenoisingScoreMatching([0.1, 0.3]),
}
CHAINS = ("AdaNCE", "AdaBRM", "MaximumLikelihood", "ContrastiveDivergence", "PersistentCD")
INEXACT = {"class_path": "adance.Langevin", "init_args": {"steps": 3, "step_size": 0.1}}
IMAGES, VECTORS = Setting((1, 4, 4), 8), Setting((3,), 8)
SETTINGS = {"images": IMAGES, "vectors": VECTORS, "conditional": Setting((3,), 8, conditional=True)}


def seed(number=1):
    return torch.Generator().manual_seed(number)


def data(setting):
    return torch.rand(32, *setting.event_shape, generator=seed(0))


def net(setting):
    torch.manual_seed(0)
    return MLP(setting.event_shape, (4,), "silu")


def built(recipe, setting):
    return recipe.build(net(setting), data(setting), batch_size=setting.batch_size, generator=seed())


def trained(objective, setting):
    """Losses of three steps, and the state of the energy and of the objective after them."""
    energy, x = net(setting), data(setting)[: setting.batch_size]
    optimizer, found = torch.optim.SGD(energy.parameters(), 0.05), []
    for step in range(1, 4):
        optimizer.zero_grad()
        out = objective.loss(energy, x, seed(step))
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step, out)
        found.append(out.value.detach())
    return [*found, *energy.state_dict().values(), *objective.state_dict().values()]


def same(one, two):
    return all(torch.equal(a.nan_to_num(-1), b.nan_to_num(-1)) for a, b in zip(one, two, strict=True))


def nulls(config, path=()):
    """The paths of all nulls in a config."""
    if isinstance(config, dict):
        return [found for name, value in config.items() for found in nulls(value, (*path, name))]
    return [path] if config is None else []


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("name", MAKERS)
def test_resolve_leaves_nothing_open_and_is_idempotent(name, setting):
    resolved = MAKERS[name]().resolve(setting)
    config = describe(resolved)
    # No bounds of a chain, and no known bound of the ratio, are choices that no default makes.
    assert {path[-1] for path in nulls(config)} <= {"bounds", "ratio_bound"}
    assert describe(resolved.resolve(setting)) == config
    assert describe(build(config, Recipe).resolve(setting)) == config


@pytest.mark.parametrize("setting", [VECTORS, SETTINGS["conditional"]], ids=["vectors", "conditional"])
@pytest.mark.parametrize("make", [AdaNCE, AdaBRM, MaximumLikelihood, PersistentCD, ContrastiveDivergence])
def test_inexact_kernels_are_resolved_too(make, setting):
    resolved = make(sampler=build(INEXACT, Langevin)).resolve(setting)
    assert {path[-1] for path in nulls(describe(resolved))} <= {"bounds", "ratio_bound"}
    assert describe(resolved.resolve(setting)) == describe(resolved)


def test_a_noise_inside_a_recipe_is_resolved_too():
    resolved = NCE(NeuralSampler(hidden=(4,))).resolve(VECTORS)
    assert nulls(describe(resolved)) == []


def test_starts_and_intervals_depend_on_the_setting_and_the_kernel():
    inexact = AdaNCE(build(INEXACT, Langevin))
    settings = [(AdaNCE(), setting) for setting in SETTINGS.values()] + [(inexact, VECTORS)]
    found = [recipe.resolve(setting) for recipe, setting in settings]
    assert [r.start for r in found] == ["rejuvenated", "reweighted", "rejuvenated", "rejuvenated"]
    assert [r.interval for r in found] == [10, "auto", 50, 50]
    assert [r.rejuvenation for r in found] == [0.25, 0.0, 0.02, 0.02]
    assert [r.pool for r in found] == [8, 40, 40, 40]


@pytest.mark.parametrize("setting", [IMAGES, VECTORS], ids=["images", "vectors"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_resolved_recipe_builds_the_same_objective(name, setting):
    recipe = MAKERS[name]()
    one, two = (built(r, setting) for r in (recipe, recipe.resolve(setting)))
    assert type(one) is type(two)
    assert same(one.state_dict().values(), two.state_dict().values())
    assert same(trained(one, setting), trained(two, setting))


def test_a_resolved_recipe_of_a_conditional_energy_builds_the_same_objective():
    x, labels, found = data(VECTORS)[:8], torch.arange(8) % 2, []
    for resolve in (False, True):
        torch.manual_seed(0)
        energy = ClassConditionalMLP((3,), 2, (4,))
        recipe = AdaNCE().resolve(SETTINGS["conditional"]) if resolve else AdaNCE()
        objective = recipe.build(energy, x, generator=seed(), condition=labels[:1])
        found.append([objective.loss(energy, x, seed(), labels).value, *objective.state_dict().values()])
    assert same(*found)


@pytest.mark.parametrize("name", MAKERS)
def test_one_recipe_serves_several_data_sets(name):
    recipe = MAKERS[name]()
    before = describe(recipe)
    first = built(recipe, IMAGES)
    trained(first, IMAGES)
    state = copy.deepcopy(first.state_dict())
    found = trained(built(recipe, VECTORS), VECTORS)
    assert describe(recipe) == before
    assert same(found, trained(built(MAKERS[name](), VECTORS), VECTORS))
    assert same(first.state_dict().values(), state.values())


@pytest.mark.parametrize("name", CHAINS)
def test_sampler_and_pool_are_those_of_each_data_set(name):
    recipe = MAKERS[name]()
    for setting, kernel, law in ((IMAGES, Langevin, "adance.Langevin"), (VECTORS, MALA, "adance.MALA")):
        noise = built(recipe, setting).noise
        resolved = recipe.resolve(setting)
        assert isinstance(recipe.kernel(setting), kernel)
        assert describe(resolved)["init_args"]["sampler"]["class_path"] == law
        plan = recipe.chain_plan(setting)
        assert type(noise.chains.kernel) is type(plan.kernel)
        assert noise.chains.kernel.steps == plan.kernel.steps
        assert noise.pool_size == plan.rows
        assert noise.chains.starts.rejuvenation == getattr(resolved, "rejuvenation", 0.0)


@pytest.mark.parametrize("name", [name for name in MAKERS if "Matching" not in name])
def test_a_recipe_is_frozen(name):
    recipe = MAKERS[name]()
    with pytest.raises(FrozenInstanceError):
        recipe.noises = 2


def test_what_is_given_stays():
    sampler = MALA(steps=3)
    recipe = AdaNCE(sampler, interval=10, pool=20, buffer=64)
    for batch in (8, 16):
        setting = Setting((3,), batch)
        objective = built(recipe, setting)
        assert objective.noise.chains.kernel is recipe.kernel(setting) is recipe.resolve(setting).sampler is sampler
        assert objective.noise.pool_size == 20


def test_the_neural_sampler_has_each_event_s_dimension():
    recipe = ACE(hidden=(4,), marginal_draws=4)
    for dimension in (5, 2):
        setting = Setting((dimension,), 8)
        assert built(recipe, setting).noise.latent == recipe.resolve(setting).latent == dimension


@pytest.mark.parametrize("recipe", [NCE("mixture"), BRM("kl", "uniform"), AdaBRM("hellinger")])
def test_names_are_resolved_to_objects_with_every_number(recipe):
    """A run does not depend on the defaults of what it names."""
    resolved = recipe.resolve(Setting((2,), 8))
    for name in ("noise", "psi"):
        assert not isinstance(getattr(resolved, name, None), str)
    assert resolved.resolve(Setting((2,), 8)) == resolved


class Square(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.scale * x.square()


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_events_without_an_axis_are_one_clear_error(name):
    with pytest.raises(InputError, match=r"events of shape \(\) in a tensor of shape \(20,\)"):
        MAKERS[name]().build(Square(), torch.randn(20), batch_size=4).loss(Square(), torch.randn(20))
