"""What holds exactly, or in expectation, of every contrast with every noise."""

import contextlib
import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from adance.contrasts import (
    KL,
    Conditional,
    Custom,
    Hellinger,
    ItakuraSaito,
    LeastSquares,
    Logistic,
    Mahalanobis,
    Power,
    Ranking,
)
from adance.energies import MLP, Gaussian
from adance.errors import InputError
from adance.noises import FixedNoise, Flow, NeuralSampler, PerturbationNoise
from adance.objectives import (
    ACE,
    BRM,
    FCE,
    NCE,
    AdaBRM,
    AdaNCE,
    ConditionalNCE,
    Contrastive,
    LogRatio,
    RankingNCE,
    Setting,
)
from adance.objectives.objective import Site
from adance.objectives.snapshot_recipe import SnapshotRecipe
from adance.samplers import MALA
from adance.samplers.model_chains import ChainOptions

PSI = [
    Logistic(),
    Logistic(3),
    KL(),
    LeastSquares(),
    Mahalanobis(2.5),
    ItakuraSaito(),
    Hellinger(),
    Power(0.5),
    Power(-2.0, noises=2),
    Custom(lambda u: u**2 - u.sqrt()),
]
DATA = torch.randn(12, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


def seed(number=7):
    return torch.Generator().manual_seed(number)


def net():
    return MLP((2,), (8, 8)).double()


def gradients(value, module):
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, list(module.parameters()))])


def built(recipe, energy):
    return recipe.build(energy, DATA, batch_size=12, generator=seed(1))


def snapshot(energy, start, interval, pool=0):
    site = Site(energy, DATA, Setting((2,), 12), seed(1), None, ChainOptions())
    return SnapshotRecipe(MALA(2), start, 0.0, interval, pool, 64).build(site)


def gaussian_noise():
    return FixedNoise(Gaussian(torch.zeros(2, dtype=torch.float64), torch.full((2,), 1.5, dtype=torch.float64)))


@pytest.mark.parametrize("psi", PSI, ids=lambda psi: type(psi).__name__)
@pytest.mark.parametrize("ratio_temperature", [None, 0.2])
def test_at_interval_one_adabrm_is_psi_s_curvature_times_likelihood(psi, ratio_temperature):
    energy = net()
    for normalize in (False, True):
        settings = {"interval": 1, "buffer": 64, "ratio_temperature": ratio_temperature, "normalize": normalize}
        objective = built(AdaBRM(psi, sampler=MALA(3), **settings), energy)
        noise = copy.deepcopy(objective).noise.sample(12 * psi.noises, DATA, seed(2)).x
        found = gradients(objective.loss(energy, DATA, seed(2)).value, energy)
        likelihood = gradients(energy(DATA).mean() - energy(noise).mean(), energy)
        factor = 1.0 if normalize else psi.curvature
        torch.testing.assert_close(found, factor * likelihood, rtol=1e-12, atol=1e-13)


def test_logistic_matching_is_noise_contrastive_estimation():
    energy = net()
    for nu in (1, 4):
        pair = [NCE(gaussian_noise(), nu), BRM("logistic", gaussian_noise(), nu)]
        assert torch.equal(*[built(recipe, energy).loss(energy, DATA, seed()).value for recipe in pair])
    settings = {"sampler": MALA(3), "interval": 5, "buffer": 64}
    ada = [AdaNCE(**settings), AdaBRM("logistic", **settings)]
    assert torch.equal(*[built(recipe, energy).loss(energy, DATA, seed()).value for recipe in ada])


class Shifted(nn.Module):
    """An energy and a constant."""

    def __init__(self, energy, constant):
        super().__init__()
        self.energy = energy
        self.constant = nn.Parameter(torch.tensor(constant, dtype=torch.float64))

    def forward(self, x):
        return self.energy(x) + self.constant


@pytest.mark.parametrize(
    "make", [lambda: RankingNCE(gaussian_noise(), 3), lambda: ConditionalNCE(), lambda: RankingNCE("gaussian", 2)]
)
def test_a_constant_in_the_energy_changes_neither_loss_nor_gradient(make):
    energy, losses, slopes = net(), [], []
    for constant in (0.0, 3.0):
        shifted = Shifted(energy, constant)
        value = built(make(), shifted).loss(shifted, DATA, seed()).value
        losses.append(value)
        slopes.append(gradients(value, shifted))
    torch.testing.assert_close(*losses, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-12)


def test_a_margin_bites_where_a_constant_cancels():
    energy = net()
    objective = Contrastive(Ranking(3), snapshot(energy, "noise", 5, 36), LogRatio(0.5, "margin", 0.1), normalize=False)
    # At r = 0 a datum lowered by δ/T has the posterior e^{−δ/T}/(e^{−δ/T} + 3).
    low = math.exp(-0.2)
    right = -0.5 * math.log(low / (low + 3))
    assert objective.loss(energy, DATA, seed()).value.item() == pytest.approx(right)


def test_conditional_loss_pairs_each_datum_with_the_noise_around_it():
    energy = net()
    objective = built(ConditionalNCE(0.3, 4, normalize=False), energy)
    y = objective.noise.sample(48, DATA, seed(2)).x.view(12, 4, 2)
    right = torch.stack([torch.nn.functional.softplus(energy(DATA[i : i + 1]) - energy(y[i])) for i in range(12)])
    torch.testing.assert_close(objective.loss(energy, DATA, seed(2)).value, right.mean())


ADVERSARIAL = {
    "FCE": lambda: FCE(3, transforms=2, hidden=(6,), fit_steps=0),
    "FCE affine": lambda: FCE(1, "affine", 2, (6,), 0, normalize=False),
    "ACE": lambda: ACE(hidden=(6,), marginal_draws=8, noises=2),
    "ACE alone": lambda: ACE(hidden=(6,), marginal_draws=8, base_weight=0.0),
}


@pytest.mark.parametrize("make", ADVERSARIAL.values(), ids=ADVERSARIAL.keys())
def test_adversary_s_gradient_is_that_of_the_whole_loss(make):
    # Finite differences with the randomness held: the gradient flows through samples and through densities.
    energy = net()
    objective = built(make(), energy)
    parameters = objective.adversary_parameters()
    value = objective.loss(energy, DATA, seed(3)).value
    found = torch.autograd.grad(value, parameters)
    direction = [torch.randn(p.shape, generator=seed(5), dtype=p.dtype) for p in parameters]
    slope = sum((g * d).sum() for g, d in zip(found, direction, strict=True))
    values, h = [], 1e-6
    for sign in (1, -1):
        with torch.no_grad():
            for p, d in zip(parameters, direction, strict=True):
                p += sign * h * d
            values.append(objective.loss(energy, DATA, seed(3)).value)
            for p, d in zip(parameters, direction, strict=True):
                p -= sign * h * d
    numeric = (values[0] - values[1]) / (2 * h)
    assert slope.abs() > 1e-3
    assert slope.item() == pytest.approx(numeric.item(), rel=1e-5)


def test_gradient_through_the_flow_s_samples_is_not_that_of_its_densities_alone():
    energy = net()
    objective = built(ADVERSARIAL["FCE"](), energy)
    parameters = objective.adversary_parameters()
    full = torch.autograd.grad(objective.loss(energy, DATA, seed(3)).value, parameters)
    noise = objective.noise.sample(36, DATA, seed(3)).x
    assert all(g.abs().max() > 0 for g in torch.autograd.grad(noise.sum(), parameters[-1:]))
    both = torch.cat([DATA, noise.detach()])
    r = -energy(both).detach() + objective.noise.energy(both)
    value = objective.contrast(r[:12], r[12:].view(12, 3)) / objective.contrast.curvature
    part = torch.autograd.grad(value, parameters)
    assert max((a - b).abs().max() for a, b in zip(full, part, strict=True)) > 1e-3


@pytest.mark.parametrize("make", ADVERSARIAL.values(), ids=ADVERSARIAL.keys())
def test_the_energy_s_gradient_is_that_of_nce_with_the_noise_held(make):
    energy = net()
    objective = built(make(), energy)
    n = 12 * objective.contrast.noises
    generator = seed(3)
    found = gradients(objective.loss(energy, DATA, generator).value, energy)
    generator = seed(3)
    with torch.no_grad():
        sample = objective.noise.sample(n, DATA, generator)
        both = torch.cat([DATA, sample.x])
        reference = objective.noise.energy(both, sample)
    r = reference - energy(both)
    scale = objective.contrast.curvature if objective.normalize else 1.0
    right = gradients(objective.contrast(r[:12], r[12:].view(12, -1)) / scale, energy)
    torch.testing.assert_close(found, right)


def test_parameters_are_shared_out_between_the_two_sides():
    objective = built(FCE(transforms=2, hidden=(6,), fit_steps=0), net())
    assert [p is objective.log_ratio.log_z for p in objective.own_parameters()] == [True]
    adversary = {id(p) for p in objective.adversary_parameters()}
    assert len(adversary) + 1 == len(list(objective.parameters()))
    fixed = built(NCE(Flow(hidden=(6,), fit_steps=0)), net())
    assert fixed.adversary_parameters() == []
    assert [p is fixed.log_ratio.log_z for p in fixed.own_parameters()] == [True]


def test_log_z_starts_at_its_estimate_from_noise():
    # E = ‖x‖²/2 + 5: log Z = log 2π − 5; the weights' standard deviation over their mean, for noise of scale 1.5, is
    # √(1.5⁴/(2·1.5² − 1) − 1).
    energy = Shifted(lambda x: x.square().sum(1) / 2, 5.0)
    data = DATA.repeat(200, 1)
    objective = NCE(gaussian_noise()).build(energy, data, batch_size=12, generator=seed(1))
    objective.start(energy, data, seed(2))
    spread = math.sqrt(1.5**4 / (2 * 1.5**2 - 1) - 1)
    assert abs(objective.log_normalizer() - (math.log(2 * math.pi) - 5)) < 5 * spread / math.sqrt(2000)
    RankingNCE().build(energy, data).start(energy, data, seed(2))


def test_bounded_weights_damp_the_ratio_and_unbounded_ones_do_not():
    for psi, T in (("kl", 1.0), ("hellinger", 1.0), ("logistic", 0.0004)):
        recipe = AdaBRM(psi, sampler=MALA(2, temperature=0.04), buffer=64, start="persistent")
        objective = built(recipe, net())
        assert objective.temperature == pytest.approx(T)
        assert objective.log_ratio.constant == "centered"
        assert built(replace(recipe, start=None), net()).temperature == pytest.approx(0.04)
        with pytest.raises(InputError, match="limit") if psi != "logistic" else contextlib.nullcontext():
            built(replace(recipe, ratio_temperature=0.0), net()).loss(net(), DATA, seed())


def test_parts_that_do_not_fit_are_refused():
    pairs, learned = PerturbationNoise(torch.ones(2)), LogRatio(constant="learned")
    flow = Flow(fit_steps=0, adversarial=True).build(DATA)
    neural = NeuralSampler(gradient="reinforce").build(DATA)
    for make in (
        lambda: Contrastive(Logistic(), pairs),
        lambda: Contrastive(Ranking(), pairs),
        lambda: Contrastive(Ranking(), gaussian_noise(), learned),
        lambda: Contrastive(Logistic(), snapshot(net(), "noise", 5), learned),
        lambda: Contrastive(Logistic(), flow, energy_penalty=1.0),
        lambda: Contrastive(Ranking(), neural),
        lambda: AdaNCE(snapshots=0),
        lambda: BRM("sine"),
        lambda: NCE("cauchy"),
        lambda: AdaBRM("sine"),
        lambda: AdaBRM("kl", noises=0),
    ):
        with pytest.raises(InputError):
            make()
    Contrastive(Conditional(), pairs)
