import math

import pytest
import torch

from adance.energies import Gaussian, Uniform
from adance.errors import InputError
from adance.noises import FittedNoise, FixedNoise


def test_gaussian_is_fitted_to_the_data(generator):
    data = torch.randn(100, 1, 2, 2, generator=generator) * 3 + 1
    noise = FittedNoise("gaussian").build(data)
    torch.testing.assert_close(noise.density.mean, data.mean(0))
    torch.testing.assert_close(noise.density.std, data.std(0, correction=0))


def test_uniform_covers_vectors_with_room(generator):
    data = torch.tensor([[0.0, 2.0], [10.0, 3.0]], dtype=torch.float64)
    noise = FittedNoise("uniform").build(data)
    x = noise.sample(20_000, data, generator).x
    assert (noise.density.low.tolist(), noise.density.high.tolist()) == ([-1.0] * 2, [11.0] * 2)
    assert x.dtype == torch.float64
    # Mean 5 ± five standard deviations of 12/√12/√n.
    assert (x.mean(0) - 5).abs().max() < 5 * math.sqrt(12 / 20_000)
    torch.testing.assert_close(noise.energy(x), torch.full((20_000,), 2 * math.log(12), dtype=torch.float64))


def test_uniform_around_constant_data_is_a_density():
    noise = FittedNoise("uniform").build(torch.full((3, 2), 5.0))
    assert noise.energy(torch.full((1, 2), 5.0)).item() == pytest.approx(2 * math.log(2))


def test_uniform_has_room_around_the_range_of_images():
    noise = FittedNoise("uniform").build(torch.zeros(3, 1, 2, 2))
    assert noise.density.low.unique().tolist() == [pytest.approx(-1.2)]
    assert noise.density.high.unique().tolist() == [pytest.approx(1.2)]


def test_a_given_density_is_left_alone(generator):
    density = Gaussian(torch.zeros(2), torch.full((2,), 2.0))
    noise = FixedNoise(density).build(torch.randn(10, 2) + 7)
    x = noise.sample(5, torch.zeros(5, 2), generator).x
    assert noise.density is density
    torch.testing.assert_close(noise.energy(x), -density.log_prob(x))


def test_any_object_that_samples_and_knows_its_density_serves(generator):
    class Points:
        def sample(self, n, generator=None):
            return torch.zeros(n, 2)

        def log_prob(self, x):
            return x.sum(1)

    noise = FixedNoise(Points()).build(torch.zeros(3, 2))
    assert noise.sample(4, torch.zeros(4, 2), generator).x.shape == (4, 2)
    assert noise.energy(torch.ones(3, 2)).tolist() == [-2.0] * 3


def test_it_is_normalized_at_temperature_one():
    noise = FixedNoise(Uniform((2,)))
    assert noise.normalized
    assert noise.temperature == 1
    assert noise.metrics() == {}


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match=r"'laplace'.*gaussian"):
        FittedNoise("laplace")
