"""Populations that follow a model: what moves, by how much, and that it changes no distribution."""

import math

import pytest
import torch

from adance.energies import Gaussian
from adance.samplers import MALA, ReplayBuffer, run_chains
from adance.samplers.population import CORRELATION, Population

N = 4000
PRIOR = Gaussian(torch.zeros(2), torch.full((2,), 2.0))
TARGET = Gaussian(torch.tensor([1.0, -0.5]), torch.tensor([0.5, 0.7]))


def a_population(generator, law=PRIOR, steps=50):
    buffer = ReplayBuffer(law.sample(N, generator))
    return buffer, Population(law, buffer, law, MALA(steps))


@pytest.mark.parametrize("times", [1, 40])
def test_restarts_keep_the_distribution_and_find_it(times, generator):
    """Samples of the target stay such; all chains in one point become such after many proposals."""
    buffer, population = a_population(generator)
    buffer.samples.copy_(TARGET.sample(N, generator) if times == 1 else TARGET.mean.expand(N, 2))
    population.log_density.copy_(-TARGET(buffer.samples).detach())
    for _ in range(times):
        population.restart(buffer, torch.arange(N), TARGET, generator)
    found = buffer.samples
    assert ((found.mean(0) - TARGET.mean) / TARGET.std).abs().max() < 5 / math.sqrt(N)
    assert (found.var(0) / TARGET.std.square() - 1).abs().max() < 5 * math.sqrt(2 / N)
    torch.testing.assert_close(population.log_density, -TARGET(found))


def test_as_many_move_as_there_are_copies_but_not_just_those(generator):
    """Copies are where the model became likelier: moving only them would carry chains away from there."""
    _, population = a_population(generator)
    population.copies[torch.randperm(N, generator=generator)[:1000]] = True
    for n, count in ((300, 1200), (1000, 1000), (1500, 1500), (3 * N, N)):
        slots = population.choose(n, generator)
        assert len(slots) == len(slots.unique()) == count
        # a draw without replacement from a quarter: five standard errors
        assert abs(population.copies[slots].float().mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / count)


@pytest.mark.parametrize("keeps", [0.7, 0.9, 0.97])
def test_chains_move_until_their_energies_have_half_forgotten(keeps, generator):
    """A step x' = a x + √(1 − a²) ξ keeps N(0, I); the energies after n have correlation a^(2n)."""
    law = Gaussian(torch.zeros(2), torch.ones(2))
    buffer, population = a_population(generator, law)
    slots, numbers = torch.arange(N), []
    for _ in range(30):
        rest = keeps ** int(population.steps)
        fresh = torch.randn(buffer.samples.shape, generator=generator)
        buffer.samples.copy_(rest * buffer.samples + math.sqrt(1 - rest**2) * fresh)
        population.note_move(buffer, slots, law)
        numbers.append(int(population.steps))
    wanted = max(1.0, math.log(CORRELATION) / (2 * math.log(keeps)))
    assert numbers[0] == 25
    # rounding, and a standard error of at most 1/√N in the correlation, which is that of 1.5 % in its logarithm
    assert all(abs(number - wanted) < 1 + 5 * 0.015 * 2 * wanted for number in numbers[10:])


def test_chains_of_more_dimensions_move_for_longer(generator):
    found = {}
    for size in (2, 50):
        law = Gaussian(torch.zeros(size), torch.ones(size))
        buffer, population = a_population(generator, law)
        kernel, step_size = population.kernel, None
        for _ in range(8):
            steps = int(population.steps)
            chains = run_chains(
                kernel, law, buffer.samples, steps, generator=generator, adapt=steps, step_size=step_size
            )
            buffer.samples.copy_(chains.x)
            step_size = chains.step_size
            population.note_move(buffer, torch.arange(N), law)
        found[size] = int(population.steps)
    assert 1 <= found[2] < found[50] < 20


def test_equal_energies_leave_the_number_of_steps(generator):
    buffer, population = a_population(generator)
    population.log_density.zero_()
    population.note_move(buffer, torch.arange(N), lambda x: torch.zeros(len(x)))
    assert population.steps == 50
