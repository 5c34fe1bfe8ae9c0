import math

import pytest
import torch
from torch import distributions as D

from adance.energies.mixtures import FittedMixture
from adance.errors import InputError
from adance.noises import FittedNoise, FixedNoise, FromDistribution, Perturbation

LAWS = {
    "batch axes are the event's": D.Normal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0])),
    "independent": D.Independent(D.Normal(torch.zeros(2), torch.ones(2)), 1),
    "full covariance": D.MultivariateNormal(torch.zeros(2), torch.tensor([[2.0, 0.5], [0.5, 1.0]])),
    "not reparameterised": D.MixtureSameFamily(
        D.Categorical(torch.tensor([0.3, 0.7])),
        D.Independent(D.Normal(torch.tensor([[-2.0, 0.0], [2.0, 1.0]]), torch.ones(2, 2)), 1),
    ),
    "heavy tails": D.StudentT(torch.full((2,), 5.0)),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_any_distribution_is_a_noise(law, generator):
    noise = FixedNoise(law).build(torch.zeros(3, 2))
    before = torch.get_rng_state()
    x = noise.sample(20_000, torch.zeros(4, 2), generator).x
    again = noise.sample(20_000, torch.zeros(4, 2), torch.Generator().manual_seed(0)).x
    assert torch.equal(x, again)
    assert torch.equal(torch.get_rng_state(), before)
    log_prob = law.log_prob(x)
    right = -log_prob.sum(1) if log_prob.ndim == 2 else -log_prob
    torch.testing.assert_close(noise.energy(x), right)
    # five standard errors of the mean; the variances of these laws are at most 5
    mean = law.mean
    assert (x.mean(0) - mean).abs().max() < 5 * math.sqrt(5 / 20_000)


def test_outside_the_support_the_density_is_zero(generator):
    for law in (D.Uniform(torch.zeros(2), torch.ones(2)), D.Gamma(torch.ones(2), torch.ones(2))):
        noise = FixedNoise(law).build(torch.zeros(3, 2))
        energies = noise.energy(torch.tensor([[0.5, 0.5], [-0.5, 0.5]]))
        assert energies[0].isfinite()
        assert energies[1] == math.inf
        assert law._validate_args == D.Distribution._validate_args  # the caller's own object is as it was


def test_a_distribution_of_another_shape_is_refused():
    with pytest.raises(InputError, match=r"\(3,\).*\(2,\)"):
        FixedNoise(D.Normal(torch.zeros(3), torch.ones(3))).build(torch.zeros(5, 2))


def test_draws_have_the_data_s_dtype(generator):
    data = torch.zeros(3, 2, dtype=torch.float64)
    noise = FixedNoise(D.Normal(torch.zeros(2), torch.ones(2))).build(data)
    x = noise.sample(3, data, generator).x
    assert x.dtype == noise.energy(x).dtype == torch.float64
    assert FromDistribution(D.Normal(torch.zeros(2, 3), torch.ones(2, 3))).sample(4).shape == (4, 2, 3)


def test_a_mixture_is_fitted_and_sampled(generator):
    centers = torch.tensor([[-3.0, 0.0], [3.0, 1.0]], dtype=torch.float64)
    which = (torch.rand(4000, generator=generator) < 0.25).long()
    data = centers[which] + 0.5 * torch.randn(4000, 2, generator=generator, dtype=torch.float64)
    noise = FittedNoise("mixture", components=2).build(data)
    assert isinstance(noise.density, FittedMixture)
    density = noise.density.mixture
    order = density.means[:, 0].argsort()
    assert (density.means[order] - centers).abs().max() < 5 * 0.5 / math.sqrt(1000)
    assert (density.log_weights.exp()[order][1] - 0.25).abs() < 5 * math.sqrt(0.25 * 0.75 / 4000)
    x = noise.sample(4000, data, generator).x
    assert (x.mean(0) - data.mean(0)).abs().max() < 5 * 3 / math.sqrt(4000)
    law = D.MixtureSameFamily(
        D.Categorical(density.log_weights.exp()), D.MultivariateNormal(density.means, scale_tril=density.factors)
    )
    torch.testing.assert_close(noise.energy(x), -law.log_prob(x))
    # weights, means and factors are buffers: saved and put back
    other = FittedNoise("mixture", components=2).build(data.flip(1))
    other.load_state_dict(noise.state_dict())
    torch.testing.assert_close(other.energy(x), noise.energy(x))


def test_a_mixture_on_images_of_many_pixels_is_diagonal(generator):
    data = torch.randn(30, 1, 9, 9, generator=generator)
    noise = FittedNoise("mixture", components=2).build(data)
    assert noise.density.mixture.factors.shape == (2, 81, 81)
    assert noise.density.mixture.factors.tril(-1).abs().max() == 0
    x = noise.sample(7, data, generator).x
    assert x.shape == (7, 1, 9, 9)
    assert noise.energy(x).isfinite().all()


def test_perturbations_are_next_to_their_own_datum(generator):
    data = torch.arange(5.0)[:, None] * torch.tensor([100.0, 1000.0])
    noise = Perturbation(0.5).build(data)
    y = noise.sample(15, data, generator).x.view(5, 3, 2)
    assert (y - data[:, None]).abs().max() < 0.5 * 6
    assert noise.energy(y.flatten(0, 1)).tolist() == [0.0] * 15
    assert y.unique(dim=1).shape == y.shape


def test_default_bandwidth_has_an_expected_log_ratio_of_a_half(generator):
    # E(y) − E(x) for E = ½Σ(x/s)² is ½Σ(σᵢ/sᵢ)² in expectation.
    for dimension in (1, 2, 30):
        s = torch.linspace(1, 3, dimension, dtype=torch.float64)
        data = s * torch.randn(20_000, dimension, generator=generator, dtype=torch.float64)
        noise = Perturbation().build(data)
        gap = ((noise.sample(20_000, data, generator).x / s) ** 2 - (data / s) ** 2).sum(1) / 2
        assert abs(gap.mean() - 0.5) < 5 * gap.std() / math.sqrt(20_000) + 0.5 * 5 / math.sqrt(20_000)


def test_bad_settings_are_refused():
    for make in (
        lambda: Perturbation(0.0),
        lambda: FittedNoise("mixture", components=0),
        lambda: FittedNoise("cauchy"),
    ):
        with pytest.raises(InputError):
            make()
