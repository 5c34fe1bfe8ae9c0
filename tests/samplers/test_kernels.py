"""Details of single kernels: formulas, limits, adaptation, bad settings."""

import math

import pytest
import torch
from laws import GAUSSIAN, MIXTURE, gaussian_sample

from adance.errors import InputError
from adance.samplers import (
    HMC,
    MALA,
    Annealed,
    Langevin,
    MetropolisHastings,
    MomentumLangevin,
    RandomWalkMetropolis,
    Tempering,
    UnderdampedLangevin,
    run_chains,
)


def quadratic(x):
    return 0.5 * x.flatten(1).square().sum(1)


def test_without_noise_momentum_is_that_of_sgd():
    x = torch.linspace(-2, 2, 7, dtype=torch.float64)[:, None]
    by_torch = x.clone().requires_grad_()
    optimizer = torch.optim.SGD([by_torch], lr=0.05, momentum=0.8)
    for _ in range(20):
        optimizer.zero_grad()
        by_torch.pow(4).sum().backward()
        optimizer.step()
    kernel = MomentumLangevin(20, 0.05, 0.8)
    torch.testing.assert_close(run_chains(kernel, lambda x: x.pow(4).sum(1), x).x, by_torch.detach())
    assert kernel.temperature == 0


def test_momentum_zero_is_langevin():
    x = torch.zeros(5, 2)
    one, two = (
        run_chains(kernel, quadratic, x, generator=torch.Generator().manual_seed(1)).x
        for kernel in (MomentumLangevin(5, 0.1, 0.0, noise_std=0.3), Langevin(5, 0.1, 0.3))
    )
    torch.testing.assert_close(one, two)


def test_momentum_noise_and_temperature_follow_from_each_other():
    assert MomentumLangevin(1, 0.1, 0.5, temperature=2.0).noise_std == pytest.approx(math.sqrt(0.2))
    assert MomentumLangevin(1, 0.1, 0.5, noise_std=0.2).temperature == pytest.approx(0.4)


def test_positions_stay_within_bounds(generator):
    seen = []
    kernel = MomentumLangevin(20, 0.1, 0.5, 1.0, bounds=(-0.5, 0.25))
    run_chains(kernel, quadratic, torch.zeros(500, 2), generator=generator, callback=lambda i, x: seen.append(x))
    assert (torch.stack(seen).min(), torch.stack(seen).max()) == (-0.5, 0.25)


def test_underdamped_momenta_have_their_known_bias(generator):
    # On ½x²: positions exactly 1, momenta 1 − ε²/4.
    n = 50_000
    chains = run_chains(UnderdampedLangevin(40, 1.2), quadratic, torch.zeros(n, 1), generator=generator)
    for values, right in ((chains.x, 1.0), (chains.state.momentum, 1 - 1.2**2 / 4)):
        assert abs(values.var() - right) < 5 * right * math.sqrt(2 / n)


@pytest.mark.parametrize(
    ("kernel", "target"),
    [(RandomWalkMetropolis(200, 20.0), 0.234), (RandomWalkMetropolis(200, 0.01), 0.234), (MALA(200, 0.001), 0.574)],
)
def test_adaptation_reaches_the_target_acceptance(kernel, target, generator):
    x = gaussian_sample(500, generator)
    warm = run_chains(kernel, GAUSSIAN.energy, x, generator=generator, adapt=200)
    after = run_chains(kernel, GAUSSIAN.energy, warm.x, 50, generator=generator, step_size=warm.step_size)
    assert abs(after.acceptance.mean() - target) < 0.03
    assert torch.equal(after.step_size, warm.step_size)


def test_one_chain_alone_adapts_too(generator):
    x = gaussian_sample(1, generator)
    warm = run_chains(MALA(), GAUSSIAN.energy, x, 2000, generator=generator, adapt=2000)
    many = gaussian_sample(2000, generator)
    after = run_chains(MALA(), GAUSSIAN.energy, many, 20, generator=generator, step_size=warm.step_size)
    assert abs(after.acceptance.mean() - 0.574) < 0.1


def test_tempering_adapts_at_each_temperature(generator):
    kernel = Tempering(RandomWalkMetropolis(200, 1.0), (1.0, 4.0, 16.0))
    state = run_chains(kernel, quadratic, torch.zeros(100, 3), generator=generator, adapt=200).state
    steps = state.inner.step_size.view(3, 100)
    assert (steps == steps[:, :1]).all()
    # scale invariance: the best step grows as the square root of the temperature
    ratios = steps[1:, 0] / steps[:-1, 0]
    assert ((ratios - 2).abs() < 0.4).all()


def test_tempering_crosses_between_far_modes(generator):
    def two(x):
        return -torch.logsumexp(-0.5 * ((x - torch.tensor([-6.0, 6.0])) / 0.5).square(), 1)

    x = torch.full((1000, 1), -6.0)
    stuck = run_chains(MALA(300, 0.2), two, x, generator=generator)
    assert (stuck.x > 0).sum() == 0
    kernel = Tempering(MALA(300, 0.2), (1.0, 3.0, 9.0, 27.0, 81.0))
    chains = run_chains(kernel, two, x, generator=generator, adapt=150)
    # both modes weigh the same: 1,000 coins, five deviations
    assert abs((chains.x > 0).float().mean() - 0.5) < 5 * math.sqrt(0.25 / 1000)
    rates = kernel.swap_rates(chains.state)
    assert rates.shape == (4,)
    assert ((rates > 0.2) & (rates < 1)).all()


def test_swaps_follow_their_formula_and_carry_their_chains(generator):
    # Chains that never move: a kernel of tiny steps. Energies ½x² of 0 at T = 1 and 2: ratio exp((1 − ½)(E₁ − E₂)).
    n = 20_000
    kernel = Tempering(RandomWalkMetropolis(1, 1e-12), (1.0, 2.0))
    x = torch.ones(n, 1, dtype=torch.float64)
    state = kernel.init(quadratic, x)
    hot = torch.cat([x, 2 * x])
    state = state._replace(
        inner=state.inner._replace(x=hot, energy=quadratic(hot) * torch.tensor([1.0] * n + [0.5] * n))
    )
    state, _ = kernel.step(quadratic, state, generator)
    right = math.exp(0.5 * (0.5 - 2.0))
    assert abs((state.x > 1.5).double().mean() - right) < 5 * math.sqrt(right / n)
    assert float(kernel.swap_rates(state)) == pytest.approx(right)
    inverse = torch.tensor([1.0] * n + [0.5] * n)
    torch.testing.assert_close(state.inner.energy, quadratic(state.inner.x) * inverse)


def test_energies_that_know_their_rows_can_be_tempered(generator):
    target = torch.arange(50.0)[:, None]
    kernel = Tempering(MALA(100, 0.3), (1.0, 2.0))
    chains = run_chains(kernel, lambda x: 50 * (x - target).square().sum(1), target.clone(), generator=generator)
    assert (chains.x - target).abs().max() < 1


def test_schedules_go_from_first_to_last_and_stay(generator):
    kernel = Annealed(Langevin(noise_std=1.0), 3, step_size=(0.4, 0.1), noise_std=(1.0, 0.01))
    assert [k.step_size for k in kernel.kernels] == pytest.approx([0.4, 0.2, 0.1])
    assert [k.noise_std for k in kernel.kernels] == pytest.approx([1.0, 0.1, 0.01])
    linear = Annealed(Langevin(), 3, step_size=(0.3, 0.1), temperature=(1.0, 0.0), shape="linear")
    assert [k.temperature for k in linear.kernels] == pytest.approx([1.0, 0.5, 0.0])
    assert (kernel.temperature, linear.temperature) == (pytest.approx(5e-4), 0)
    x = torch.ones(2, 1, dtype=torch.float64)
    found = run_chains(Annealed(Langevin(noise_std=0), 2, step_size=(0.4, 0.1)), quadratic, x, 4).x
    torch.testing.assert_close(found, x * 0.6 * 0.9**3)


@pytest.mark.parametrize("temperature", [None, 0.5])
def test_a_schedule_of_step_sizes_leaves_the_temperature(temperature):
    kernels = Annealed(Langevin(temperature=temperature), 3, step_size=(0.4, 0.1)).kernels
    assert [kernel.temperature for kernel in kernels] == pytest.approx([temperature or 1.0] * 3)


def test_annealed_adjusted_kernels_use_the_scheduled_step():
    seen = []
    kernel = Annealed(MALA(step_size=1.0), 3, step_size=(0.4, 0.1))
    state = kernel.init(quadratic, torch.zeros(2, 1))
    for _ in range(4):
        state, info = kernel.step(quadratic, state)
        state = kernel.adapt(state, info)
        seen.append(kernel.kernels[0].init_args["step_size"])
    assert kernel.exact
    assert seen == pytest.approx([0.4] * 4)
    only_hot = Annealed(HMC(step_size=0.5, leapfrog_steps=2), 50, temperature=(5.0, 1.0))
    assert not only_hot.exact
    warm = run_chains(only_hot, quadratic, torch.zeros(300, 2), adapt=50)
    assert warm.step_size != 0.5


def test_annealing_finds_both_modes_in_their_shares(generator):
    # The weights of well separated modes survive annealing from a temperature at which chains cross freely.
    kernel = Annealed(MALA(step_size=0.1), 300, temperature=(20.0, 1.0))
    x = run_chains(kernel, MIXTURE.energy, torch.zeros(2000, 2, dtype=torch.float64), adapt=300, generator=generator).x
    assert 0.5 < (x[:, 0] > 0).double().mean() < 0.85


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RandomWalkMetropolis(step_size=0), "step_size"),
        (lambda: RandomWalkMetropolis(target_acceptance=1), "target_acceptance"),
        (lambda: MetropolisHastings(object()), "sample"),
        (lambda: MetropolisHastings(torch.distributions.Normal(0, 1), -1), "steps"),
        (lambda: UnderdampedLangevin(friction=0), "friction"),
        (lambda: UnderdampedLangevin(step_size=math.nan), "step_size"),
        (lambda: MomentumLangevin(momentum=1), "momentum"),
        (lambda: MomentumLangevin(noise_std=1, temperature=1), "not both"),
        (lambda: MomentumLangevin(bounds=(1, 0)), "bounds"),
        (lambda: Annealed(MALA()), "at least one"),
        (lambda: Annealed(MALA(), noise_std=(1, 0.1)), "MALA has no noise_std"),
        (lambda: Annealed(MALA(), 0, step_size=(1, 0.1)), "steps"),
        (lambda: Annealed(Langevin(), temperature=(1, 0)), "geometric"),
        (lambda: Annealed(Langevin(), temperature=(1, 0), shape="round"), "round"),
        (lambda: Tempering(MALA(), (1.0,)), "two or more"),
        (lambda: Tempering(MALA(), (2.0, 1.0)), "increasing"),
        (lambda: Tempering(Langevin(noise_std=0)), "above 0"),
        (lambda: run_chains(MALA(), quadratic, torch.zeros(1, 1), thin=0), "thin"),
    ],
)
def test_bad_settings_are_refused(make, words):
    with pytest.raises(InputError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)
