import torch

from adance.samplers import MALA, Langevin
from adance.samplers.sampling import draw_samples


def quadratic(x):
    return 0.5 * x.square().sum(1)


def test_chains_for_sampling_are_longer_than_those_of_training(generator):
    x = torch.zeros(4, 2)
    assert len(draw_samples(Langevin(3, 0.1), quadratic, x, generator=generator).energy) == 6
    assert len(draw_samples(MALA(3), quadratic, x, generator=generator).energy) == 60
    assert len(draw_samples(MALA(3), quadratic, x, 5, generator).energy) == 5


def test_adjusted_chains_adapt_in_their_first_half(generator):
    chains = draw_samples(MALA(20, 5.0), quadratic, torch.zeros(1000, 5), generator=generator)
    second = chains.acceptance[200:]
    # 200,000 coins: the mean acceptance of the second half is that of one fixed step, near the target.
    assert abs(second.mean() - 0.574) < 0.03
    assert chains.acceptance[5] < 0.2
