"""What holds exactly, or in expectation, of every contrast with every noise."""

import contextlib
import copy
import math

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
from adance.noises import Around, FixedNoise, Flow, NeuralSampler, Snapshot
from adance.objectives import ACE, BRM, FCE, NCE, AdaBRM, AdaNCE, ConditionalNCE, Contrastive, RankingNCE
from adance.samplers import MALA
from adance.samplers.starts import ChainStarts

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


def gaussian_noise():
    return FixedNoise(Gaussian(torch.zeros(2, dtype=torch.float64), torch.full((2,), 1.5, dtype=torch.float64)))


@pytest.mark.parametrize("psi", PSI, ids=lambda psi: type(psi).__name__)
@pytest.mark.parametrize("ratio_temperature", [None, 0.2])
def test_at_interval_one_adabrm_is_psi_s_curvature_times_likelihood(psi, ratio_temperature):
    energy = net()
    for normalize in (False, True):
        objective = AdaBRM(
            psi,
            MALA(3),
            interval=1,
            buffer=64,
            ratio_temperature=ratio_temperature,
            normalize=normalize,
        )
        objective.prepare(energy, DATA, 12, seed(1))
        noise = copy.deepcopy(objective).noise.draw(12 * psi.noises, DATA, seed(2))
        found = gradients(objective.loss(energy, DATA, seed(2)).value, energy)
        likelihood = gradients(energy(DATA).mean() - energy(noise).mean(), energy)
        factor = 1.0 if normalize else psi.curvature
        torch.testing.assert_close(found, factor * likelihood, rtol=1e-12, atol=1e-13)


def test_logistic_matching_is_noise_contrastive_estimation():
    energy = net()
    for nu in (1, 4):
        pair = [NCE(gaussian_noise(), nu), BRM("logistic", gaussian_noise(), nu)]
        losses = [objective.loss(energy, DATA, seed()).value for objective in pair]
        assert torch.equal(*losses)
    ada = [AdaNCE(MALA(3), 5, buffer=64), AdaBRM("logistic", MALA(3), 5, buffer=64)]
    losses = []
    for objective in ada:
        objective.prepare(energy, DATA, 12, seed(1))
        losses.append(objective.loss(energy, DATA, seed()).value)
    assert torch.equal(*losses)


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
        value = make().loss(shifted, DATA, seed()).value
        losses.append(value)
        slopes.append(gradients(value, shifted))
    torch.testing.assert_close(*losses, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-12)


def test_a_margin_bites_where_a_constant_cancels():
    energy = net()
    noise = Snapshot(MALA(2), ChainStarts("noise"), 5, 36)
    objective = Contrastive(Ranking(3), noise, ratio_temperature=0.5, margin=0.1, normalize=False)
    objective.prepare(energy, DATA, 12, seed(1))
    # At r = 0 a datum lowered by δ/T has the posterior e^{−δ/T}/(e^{−δ/T} + 3).
    low = math.exp(-0.2)
    right = -0.5 * math.log(low / (low + 3))
    assert objective.loss(energy, DATA, seed()).value.item() == pytest.approx(right)


def test_conditional_loss_pairs_each_datum_with_the_noise_around_it():
    energy, objective = net(), ConditionalNCE(0.3, 4, normalize=False)
    objective.prepare(energy, DATA, 12, seed(1))
    y = objective.noise.draw(48, DATA, seed(2)).view(12, 4, 2)
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
    energy, objective = net(), make()
    objective.prepare(energy, DATA, 12, seed(1))
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
    energy, objective = net(), ADVERSARIAL["FCE"]()
    objective.prepare(energy, DATA, 12, seed(1))
    parameters = objective.adversary_parameters()
    full = torch.autograd.grad(objective.loss(energy, DATA, seed(3)).value, parameters)
    noise = objective.noise.draw(36, DATA, seed(3))
    assert all(g.abs().max() > 0 for g in torch.autograd.grad(noise.sum(), parameters[-1:]))
    both = torch.cat([DATA, noise.detach()])
    r = -energy(both).detach() + objective.noise.energy(both, both[:, 0])
    value = objective.contrast(r[:12], r[12:].view(12, 3)) / objective.contrast.curvature
    part = torch.autograd.grad(value, parameters)
    assert max((a - b).abs().max() for a, b in zip(full, part, strict=True)) > 1e-3


@pytest.mark.parametrize("make", ADVERSARIAL.values(), ids=ADVERSARIAL.keys())
def test_the_energy_s_gradient_is_that_of_nce_with_the_noise_held(make):
    energy, objective = net(), make()
    objective.prepare(energy, DATA, 12, seed(1))
    n = 12 * objective.contrast.noises
    generator = seed(3)
    found = gradients(objective.loss(energy, DATA, generator).value, energy)
    generator = seed(3)
    with torch.no_grad():
        noise = objective.noise.draw(n, DATA, generator)
        both = torch.cat([DATA, noise])
        reference = objective.noise.energy(both, both[:, 0])
    r = reference - energy(both)
    scale = objective.contrast.curvature if objective.normalize else 1.0
    right = gradients(objective.contrast(r[:12], r[12:].view(12, -1)) / scale, energy)
    torch.testing.assert_close(found, right)


def test_parameters_are_shared_out_between_the_two_sides():
    objective = FCE(transforms=2, hidden=(6,), fit_steps=0)
    objective.prepare(net(), DATA, 12, seed(1))
    assert [p is objective.log_z for p in objective.own_parameters()] == [True]
    adversary = {id(p) for p in objective.adversary_parameters()}
    assert len(adversary) + 1 == len(list(objective.parameters()))
    fixed = NCE(Flow(hidden=(6,), fit_steps=0))
    fixed.prepare(net(), DATA, 12, seed(1))
    assert fixed.adversary_parameters() == []
    assert [p is fixed.log_z for p in fixed.own_parameters()] == [True]


def test_log_z_starts_at_its_estimate_from_noise():
    # E = ‖x‖²/2 + 5: log Z = log 2π − 5; the weights' standard deviation over their mean, for noise of scale 1.5, is
    # √(1.5⁴/(2·1.5² − 1) − 1).
    energy = Shifted(lambda x: x.square().sum(1) / 2, 5.0)
    objective = NCE(gaussian_noise())
    data = DATA.repeat(200, 1)
    objective.prepare(energy, data, 12, seed(1))
    objective.start(energy, data, seed(2))
    spread = math.sqrt(1.5**4 / (2 * 1.5**2 - 1) - 1)
    assert abs(objective.log_normalizer() - (math.log(2 * math.pi) - 5)) < 5 * spread / math.sqrt(2000)
    RankingNCE().start(energy, data, seed(2))


def test_growing_contrasts_form_the_ratio_at_temperature_one_and_saturating_ones_damped():
    for psi, T in (("kl", 1.0), ("hellinger", 1.0), ("logistic", 0.0004)):
        objective = AdaBRM(psi, MALA(2, temperature=0.04), buffer=64, start="persistent")
        objective.prepare(net(), DATA, 12, seed(1))
        assert objective.temperature == pytest.approx(T)
        assert objective.centre
        reweighted = AdaBRM(psi, MALA(2, temperature=0.04), buffer=64)
        reweighted.prepare(net(), DATA, 12, seed(1))
        assert reweighted.temperature == pytest.approx(0.04)
        with pytest.raises(InputError, match="limit") if psi != "logistic" else contextlib.nullcontext():
            objective.ratio_temperature = 0.0
            objective.loss(net(), DATA, seed())


def test_parts_that_do_not_fit_are_refused():
    snapshot = Snapshot(None, ChainStarts("noise"))
    for make in (
        lambda: Contrastive(Logistic(), Around()),
        lambda: Contrastive(Ranking(), Around()),
        lambda: Contrastive(Ranking(), gaussian_noise(), learn_log_z=True),
        lambda: Contrastive(Logistic(), snapshot, learn_log_z=True),
        lambda: Contrastive(Logistic(), Flow(adversarial=True), energy_penalty=1.0),
        lambda: Contrastive(Ranking(), NeuralSampler(gradient="reinforce")),
        lambda: AdaNCE(snapshots=0),
        lambda: BRM("sine"),
        lambda: NCE("cauchy"),
        lambda: AdaBRM("kl", noises=0),
    ):
        with pytest.raises(InputError):
            make()
    assert Contrastive(Conditional(), Around()).noise.paired
