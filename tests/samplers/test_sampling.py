import math

import pytest
import torch

from adance.samplers import MALA, Langevin, run_chains
from adance.samplers.persistent_chains import runs_since_noise
from adance.samplers.sampling import sampling_steps


def quadratic(x):
    return 0.5 * x.square().sum(1)


def test_adjusted_chains_for_sampling_are_longer_than_those_of_training():
    assert sampling_steps(Langevin(3, 0.1)) == 6
    assert sampling_steps(Langevin(3, 0.1), 2.5) == 8
    assert sampling_steps(Langevin(3, 0.1), 1e9) == 60
    assert sampling_steps(MALA(3)) == sampling_steps(MALA(3), 1.0) == 60


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.8])
def test_the_number_of_runs_is_the_mean_age_of_chains(rate):
    """Ages of chains by their coins alone."""
    ages, generator = torch.zeros(20_000), torch.Generator().manual_seed(0)
    for _ in range(100):
        ages = torch.where(torch.rand(len(ages), generator=generator) < rate, 0, ages) + 1
    error = 4 * math.sqrt(1 - rate) / rate / math.sqrt(len(ages))
    assert abs(ages.mean() - runs_since_noise("rejuvenated", rate)) < error


def test_chains_that_never_start_afresh_have_no_number_of_runs():
    assert runs_since_noise("noise", 0.0) == runs_since_noise("rejuvenated", 1.0) == 1
    assert {runs_since_noise(kind, 0.0) for kind in ("rejuvenated", "persistent", "data", "reweighted")} == {None}
    assert runs_since_noise("rejuvenated", 1e-300) == pytest.approx(1e300)


def test_chains_that_adapt_in_their_first_half_keep_the_target_acceptance(generator):
    chains = run_chains(MALA(20, 5.0), quadratic, torch.zeros(1000, 5), 400, generator=generator, adapt=200)
    second = chains.acceptance[200:]
    # 200,000 coins: the mean acceptance of the second half is that of one fixed step, near the target.
    assert abs(second.mean() - 0.574) < 0.03
    assert chains.acceptance[5] < 0.2
