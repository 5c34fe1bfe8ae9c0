import math

import pytest
import torch
from laws import COVARIANCE, GAUSSIAN, check_covariance, gaussian_sample

from adance.errors import InputError
from adance.samplers import HMC, dense_mass, diagonal_mass, euler, leapfrog, run_chains


def quartic(x):
    return (x.pow(4) / 4 + x.square() / 2).flatten(1).sum(1) + 0.3 * x[:, 0] * x[:, 1]


def quadratic(x):
    return 0.5 * x.flatten(1).square().sum(1)


def phase_points(generator, n=50, d=2):
    return torch.randn(2, n, d, generator=generator, dtype=torch.float64)


def test_leapfrog_is_reversible_and_euler_is_not(generator):
    x, v = phase_points(generator)
    for integrator, reversible in ((leapfrog, True), (euler, False)):
        end = integrator(quartic, x, v, 0.1, 15)
        back = integrator(quartic, end.x, -end.momentum, 0.1, 15)
        error = max((back.x - x).abs().max(), (back.momentum + v).abs().max())
        assert (error < 1e-11) if reversible else (error > 1e-2)


def jacobian(integrator, x, v, h=1e-5):
    """Determinants ``(B,)`` of the map of phase space by central differences, of error h²."""
    z, d = torch.cat([x, v], 1), x.shape[1]

    def flow(z):
        end = integrator(quartic, z[:, :d], z[:, d:], 0.1, 15)
        return torch.cat([end.x, end.momentum], 1)

    columns = [(flow(z + h * e) - flow(z - h * e)) / (2 * h) for e in torch.eye(2 * d, dtype=z.dtype)]
    return torch.linalg.det(torch.stack(columns, 2))


def test_leapfrog_preserves_volume_and_euler_does_not(generator):
    x, v = 0.5 * phase_points(generator)
    assert (jacobian(leapfrog, x, v) - 1).abs().max() < 1e-6
    assert (jacobian(euler, x, v) - 1).min() > 0.05


def test_euler_swells_by_its_known_factor(generator):
    # On ½x² each step multiplies volume, and x² + v², by 1 + ε².
    x, v = phase_points(generator)
    end = euler(quadratic, x, v, 0.2, 10)
    torch.testing.assert_close(end.x.square() + end.momentum.square(), (x.square() + v.square()) * (1 + 0.2**2) ** 10)


def test_leapfrog_costs_one_gradient_a_step(generator):
    calls = []

    def counting(x):
        calls.append(1)
        return quadratic(x)

    x, v = phase_points(generator)
    leapfrog(counting, x, v, 0.1, 7, gradient=x)
    assert len(calls) == 7
    assert run_chains(HMC(4, leapfrog_steps=7), quadratic, x, generator=generator).gradients == len(x) * (1 + 4 * 7)


def test_kinetic_energy_is_that_of_the_whole_event(generator):
    # 192 coordinates: the variance of all of them together has standard deviation √(2/(192 n)).
    n, event = 500, (3, 8, 8)
    x = torch.randn(n, *event, generator=generator)
    chains = run_chains(HMC(20, 0.4, 5), quadratic, x, generator=generator)
    assert 0.5 < chains.acceptance.mean() < 0.99
    assert abs(chains.x.var() - 1) < 5 * math.sqrt(2 / (192 * n))
    wide = run_chains(HMC(20, 0.4, 5), lambda x: quadratic(x.view(len(x), -1)), x.flatten(1), generator=generator)
    assert abs(wide.acceptance.mean() - chains.acceptance.mean()) < 0.02


@pytest.mark.parametrize("shape", ["diagonal", "dense"])
def test_a_fitted_mass_makes_long_steps_good(shape, generator):
    scales = torch.tensor([0.1, 1.0, 10.0], dtype=torch.float64)
    law = torch.outer(scales, scales) * (0.7 * torch.eye(3, dtype=torch.float64) + 0.3)
    precision = torch.linalg.inv(law)
    x = gaussian_sample(4000, generator, law)
    mass = (diagonal_mass if shape == "diagonal" else dense_mass)(x)
    torch.testing.assert_close(
        mass, 1 / law.diagonal() if shape == "diagonal" else precision, rtol=0.15, atol=0.02 * float(mass.max())
    )

    def energy(x):
        return 0.5 * ((x @ precision) * x).sum(1)

    found = run_chains(HMC(10, 0.6, 4, mass=mass), energy, x, generator=generator)
    assert found.acceptance.mean() > 0.8
    check_covariance(found.x, law)
    assert run_chains(HMC(10, 0.6, 4), energy, x, generator=generator).acceptance.mean() < 0.2


def test_trajectories_that_return_are_broken_by_jitter(generator):
    # Four leapfrog steps of ε with cos θ = 1 − ε²/2 = 0 turn the whole circle: without jitter the chain never moves.
    x = torch.ones(2000, 1, dtype=torch.float64)
    still = run_chains(HMC(5, math.sqrt(2), 4, jitter=0), quadratic, x, generator=generator)
    assert (still.x - 1).abs().max() < 1e-9
    moved = run_chains(HMC(40, math.sqrt(2), 4), quadratic, x, generator=generator)
    assert abs(moved.x.var() - 1) < 5 * math.sqrt(2 / 2000)


def test_adaptation_reaches_the_target_acceptance(generator):
    x = gaussian_sample(500, generator)
    warm = run_chains(HMC(150, 5.0, 5), GAUSSIAN.energy, x, generator=generator, adapt=150)
    after = run_chains(
        HMC(40, leapfrog_steps=5), GAUSSIAN.energy, warm.x, step_size=warm.step_size, generator=generator
    )
    assert abs(after.acceptance.mean() - 0.8) < 0.03
    check_covariance(after.x, COVARIANCE)


@pytest.mark.parametrize("step_size", [1e-4, 1e-3, 0.1, 5.0])
@pytest.mark.parametrize("rows", [1, 500])
def test_adaptation_finds_the_target_from_any_step_size(step_size, rows, generator):
    x = gaussian_sample(rows, generator)
    chains = run_chains(HMC(400, step_size, 5), GAUSSIAN.energy, x, generator=generator, adapt=400)
    assert abs(chains.acceptance[200:].mean() - 0.8) < (0.02 if rows > 1 else 0.08)


def test_a_given_step_size_is_not_searched_again(generator):
    x = gaussian_sample(500, generator)
    given = torch.tensor(1e-3, dtype=x.dtype)
    chains = run_chains(HMC(1, leapfrog_steps=5), GAUSSIAN.energy, x, generator=generator, adapt=1, step_size=given)
    assert 1e-3 < chains.step_size < 1.1e-3


def test_trajectories_to_nan_are_refused(generator):
    chains = run_chains(
        HMC(20, 0.5, 3),
        lambda x: torch.where(x > 0.5, math.nan, 0.5 * x.square()).sum(1),
        torch.zeros(500, 1),
        generator=generator,
    )
    assert chains.x.max() <= 0.5
    assert chains.finite.all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": -1}, "steps"),
        ({"step_size": 0.0}, "step_size"),
        ({"leapfrog_steps": 0}, "leapfrog_steps"),
        ({"temperature": 0.0}, "temperature"),
        ({"jitter": 1.0}, "jitter"),
        ({"target_acceptance": 1.0}, "target_acceptance"),
        ({"mass": torch.tensor([1.0, -1.0])}, "positive"),
        ({"mass": torch.tensor([[1.0, 2.0], [2.0, 1.0]]), "steps": 1}, "positive definite"),
        ({"mass": torch.ones(3), "steps": 1}, r"\(3,\).*\(2,\)"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(InputError, match=words):
        run_chains(HMC(**settings), quadratic, torch.zeros(4, 2))
