"""What every kernel keeps to: invariance from exact samples, and leaving alone all that is not its own."""

import copy
import gc

import pytest
import torch
from laws import COVARIANCE, FUNNEL, GAUSSIAN, LAWS, MIXTURE, PRECISION, check_covariance, gaussian_sample, same_law
from torch.nn.parameter import is_lazy

from adance.energies import MLP, Gaussian
from adance.errors import InputError
from adance.samplers import (
    HMC,
    MALA,
    Annealed,
    Flip,
    Gibbs,
    GibbsWithGradients,
    Independent,
    Langevin,
    MetropolisHastings,
    MomentumLangevin,
    RandomWalkMetropolis,
    Tempering,
    UnderdampedLangevin,
    run_chains,
)


class Shrink:
    """An asymmetric proposal: towards 0, with noise."""

    def sample(self, x, generator):
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        return 0.8 * x + 0.9 * noise

    def log_prob(self, to, given):
        return -0.5 * ((to - 0.8 * given) / 0.9).square().flatten(1).sum(1)


def wide(d):
    return Gaussian(torch.zeros(d, dtype=torch.float64), torch.full((d,), 2.5, dtype=torch.float64))


# Each from the law's dimension and temperature; settings from timid to rash.
ADJUSTED = {
    "RandomWalkMetropolis-0.3": lambda d, T=1.0: RandomWalkMetropolis(10, 0.3, T),
    "RandomWalkMetropolis-3": lambda d, T=1.0: RandomWalkMetropolis(10, 3.0, T),
    "MetropolisHastings-asymmetric": lambda d, T=1.0: MetropolisHastings(Shrink(), 10, T),
    "MetropolisHastings-independent": lambda d, T=1.0: MetropolisHastings(Independent(wide(d)), 10, T),
    "MALA-0.1": lambda d, T=1.0: MALA(10, 0.1, T),
    "MALA-1.5": lambda d, T=1.0: MALA(10, 1.5, T),
    "HMC-0.1": lambda d, T=1.0: HMC(5, 0.1, 4, T),
    "HMC-1": lambda d, T=1.0: HMC(5, 1.0, 3, T, jitter=0),
    "HMC-diagonal": lambda d, T=1.0: HMC(5, 0.5, 3, T, mass=torch.linspace(0.5, 2, d)),
    "HMC-dense": lambda d, T=1.0: HMC(5, 0.5, 3, T, mass=0.7 * torch.eye(d) + 0.3),
    "Annealed-HMC": lambda d, T=1.0: Annealed(HMC(5, leapfrog_steps=3, temperature=T), 5, step_size=(1.0, 0.1)),
    "Tempering-MALA": lambda d, T=1.0: Tempering(MALA(60, 0.3), (T, 2 * T, 3 * T)),
    "Tempering-Metropolis": lambda d, T=1.0: Tempering(RandomWalkMetropolis(60, 0.8), (T, 1.5 * T)),
}
N = 10_000


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("name", [name for name in ADJUSTED if "Tempering" not in name])
def test_exact_samples_stay_exact(name, law, generator):
    kernel = ADJUSTED[name](law.d)
    assert kernel.exact
    x = law.sample(N, generator)
    chains = run_chains(kernel, law.energy, x, generator=generator)
    assert 0 < chains.acceptance.mean() < 1
    assert same_law(chains.x, law.sample(N, generator))
    for power in (1, 2):
        # the difference of two independent means of n draws each; the funnel's fourth moments are heavy but finite
        a, b = chains.x.pow(power), law.sample(N, generator).pow(power)
        assert ((a.mean(0) - b.mean(0)).abs() < 5 * ((a.var(0) + b.var(0)) / N).sqrt()).all()


@pytest.mark.parametrize("law", [GAUSSIAN, MIXTURE], ids=lambda law: law.name)
@pytest.mark.parametrize("name", ["Tempering-MALA", "Tempering-Metropolis"])
def test_tempered_chains_come_to_the_law(name, law, generator):
    # At first the hot chains are where the cold ones are, so exact samples are disturbed, and then come back.
    kernel = ADJUSTED[name](law.d)
    chains = run_chains(kernel, law.energy, law.sample(N // 2, generator), generator=generator)
    assert same_law(chains.x, law.sample(N, generator))


@pytest.mark.parametrize("temperature", [0.5, 2.0])
@pytest.mark.parametrize("name", ADJUSTED)
def test_temperature_scales_the_law(name, temperature, generator):
    kernel = ADJUSTED[name](3, temperature)
    assert kernel.temperature == temperature
    right = temperature * COVARIANCE
    n = N // 2 if "Tempering" in name else N
    x = run_chains(kernel, GAUSSIAN.energy, gaussian_sample(n, generator, right), generator=generator).x
    check_covariance(x, right)
    assert same_law(x, gaussian_sample(N, generator, right))


# The laws that unadjusted kernels have at their step size, on a quadratic energy.
def langevin_law(h):
    return COVARIANCE @ torch.linalg.inv(torch.eye(3, dtype=torch.float64) - h / 2 * PRECISION)


def momentum_law(h, mu):
    return COVARIANCE @ torch.linalg.inv(torch.eye(3, dtype=torch.float64) - h / (2 * (1 + mu)) * PRECISION)


UNADJUSTED = {
    "Langevin": (Langevin(150, 0.15), langevin_law(0.15)),
    "MomentumLangevin": (MomentumLangevin(150, 0.3, 0.5, temperature=1.0), momentum_law(0.3, 0.5)),
    "UnderdampedLangevin": (UnderdampedLangevin(150, 0.6), COVARIANCE),
}


@pytest.mark.parametrize("name", UNADJUSTED)
def test_unadjusted_kernels_have_their_known_bias(name, generator):
    kernel, right = UNADJUSTED[name]
    assert not kernel.exact
    x = run_chains(kernel, GAUSSIAN.energy, gaussian_sample(N, generator), generator=generator).x
    check_covariance(x, right)
    assert same_law(x, gaussian_sample(N, generator, right))


def test_the_two_sample_test_sees_a_bias(generator):
    x = run_chains(Langevin(30, 0.15), GAUSSIAN.energy, gaussian_sample(N, generator), generator=generator).x
    assert not same_law(x, gaussian_sample(N, generator))


@pytest.mark.parametrize(
    "kernel", [Langevin(30, 0.002), UnderdampedLangevin(30, 0.05)], ids=["Langevin", "Underdamped"]
)
@pytest.mark.parametrize("law", [MIXTURE, FUNNEL], ids=lambda law: law.name)
def test_unadjusted_kernels_are_nearly_exact_at_small_steps(kernel, law, generator):
    # The funnel's neck is stiff at any step: only where its scale e^(v/2) is well above the step is the law compared.
    x, right = run_chains(kernel, law.energy, law.sample(N, generator), generator=generator).x, law.sample(N, generator)
    if law is FUNNEL:
        x, right = (values[values[:, 0] > -1] for values in (x, right))
    assert same_law(x, right)


class Conditional:
    """The normal law with its full conditionals."""

    def __call__(self, x):
        return GAUSSIAN.energy(x)

    def conditional(self, x, units, generator):
        i = int(units)
        precision = PRECISION.to(x)
        mean = x[:, i] - (x @ precision[i]) / precision[i, i]
        noise = torch.randn(len(x), generator=generator, dtype=x.dtype)
        return (mean + noise / precision[i, i].sqrt())[:, None]


@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_gibbs_draws_from_given_conditionals(scan, generator):
    x = torch.zeros(N, 3, dtype=torch.float64)
    x = run_chains(Gibbs(40, scan=scan), Conditional(), x, generator=generator).x
    check_covariance(x, COVARIANCE)
    with pytest.raises(InputError, match="temperature 1"):
        run_chains(Gibbs(1, 2.0), Conditional(), x)


CONTINUOUS = {
    "Langevin": Langevin(4, 0.1),
    "MomentumLangevin": MomentumLangevin(4, 0.1, noise_std=0.1),
    "UnderdampedLangevin": UnderdampedLangevin(4),
    "RandomWalkMetropolis": RandomWalkMetropolis(4),
    "MetropolisHastings": MetropolisHastings(Shrink(), 4),
    "MALA": MALA(4),
    "HMC": HMC(4, leapfrog_steps=2),
    "Annealed": Annealed(Langevin(4, noise_std=0.1), 4, step_size=(0.1, 0.05), noise_std=(0.1, 0.01)),
    "Annealed-MALA": Annealed(MALA(), 4, step_size=(0.1, 0.05), temperature=(2.0, 1.0)),
    "Tempering": Tempering(MALA(4), (1.0, 2.0)),
    "Tempering-Langevin": Tempering(Langevin(4, 0.1), (1.0, 2.0)),
    "Tempering-Underdamped": Tempering(UnderdampedLangevin(4), (1.0, 2.0)),
}
DISCRETE = {
    "Gibbs": Gibbs(4, updates=5),
    "Gibbs-random": Gibbs(4, scan="random", updates=5),
    "GibbsWithGradients": GibbsWithGradients(4),
    "MetropolisHastings-flip": MetropolisHastings(Flip(), 4),
    "Tempering-Gibbs": Tempering(Gibbs(4, updates=5), (1.0, 2.0)),
}
EVERY = CONTINUOUS | DISCRETE


def starts(name, shape, generator, dtype=torch.float32):
    x = torch.randn(shape, generator=generator, dtype=dtype)
    return (x > 0).to(dtype) if name in DISCRETE else x


def quadratic(x):
    return 0.5 * x.flatten(1).square().sum(1)


@pytest.mark.parametrize("event", [(3, 8, 8), (2,)])
@pytest.mark.parametrize("name", EVERY)
def test_event_shapes_and_records(name, event, generator):
    kernel = EVERY[name]
    x = starts(name, (6, *event), generator)
    before = x.clone()
    chains = run_chains(kernel, quadratic, x, generator=generator, adapt=2, record=True, thin=2)
    assert torch.equal(x, before)
    assert chains.x.shape == x.shape
    assert chains.positions.shape == (2, *x.shape)
    assert torch.equal(chains.positions[-1], chains.x)
    assert chains.energy.shape == chains.acceptance.shape == (4,)
    torch.testing.assert_close(chains.energy[0], quadratic(x).mean())
    assert chains.gradient_norm.shape == ((4,) if kernel.gradients_per_step else (0,))
    assert chains.finite.all()
    assert chains.state.x is chains.x or torch.equal(chains.state.x, chains.x)


@pytest.mark.parametrize("name", EVERY)
def test_a_seed_gives_the_same_chains_and_the_global_generator_is_untouched(name):
    def run(disturb):
        generator = torch.Generator().manual_seed(5)
        x = starts(name, (6, 3), generator)
        callback = (lambda i, x: torch.rand(i)) if disturb else None
        return run_chains(EVERY[name], quadratic, x, generator=generator, adapt=2, callback=callback).x

    state = torch.get_rng_state()
    undisturbed = run(False)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(undisturbed, run(True))


@pytest.mark.parametrize("name", EVERY)
def test_nothing_of_the_energy_or_the_kernel_changes(name, generator):
    net = MLP((1, 3, 3), hidden=(8, 8))
    kernel = EVERY[name]
    weights = copy.deepcopy(net.state_dict())
    settings = {key: value for key, value in vars(kernel).items() if isinstance(value, (int, float, str, list))}
    settings = copy.deepcopy({key: value for key, value in settings.items() if key != "kernels"})
    run_chains(kernel, net, starts(name, (5, 1, 3, 3), generator), generator=generator, adapt=2)
    assert all(torch.equal(value, weights[key]) for key, value in net.state_dict().items())
    assert all(parameter.requires_grad and parameter.grad is None for parameter in net.parameters())
    assert all(module.training for module in net.modules())
    assert {key: vars(kernel)[key] for key in settings} == settings


@pytest.mark.parametrize("name", EVERY)
def test_no_steps_give_a_copy(name, generator):
    x = starts(name, (4, 2), generator)
    chains = run_chains(EVERY[name], quadratic, x, steps=0, record=True)
    assert torch.equal(chains.x, x)
    assert chains.x.data_ptr() != x.data_ptr()
    assert (chains.gradients, chains.positions.shape, chains.energy.shape) == (0, (0, 4, 2), (0,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", EVERY)
def test_precision_is_kept(name, dtype, generator):
    x = starts(name, (4, 2), generator, dtype)
    chains = run_chains(EVERY[name], quadratic, x, generator=generator, adapt=2, record=True)
    assert {v.dtype for v in (chains.x, chains.energy, chains.acceptance, chains.positions)} == {dtype}
    assert chains.step_size is None or chains.step_size.dtype == dtype


@pytest.mark.parametrize("name", EVERY)
def test_gradients_are_counted(name, generator):
    spent = []

    def counting(x):
        if torch.is_grad_enabled():
            spent.append(len(x))
        return quadratic(x)

    chains = run_chains(EVERY[name], counting, starts(name, (3, 2), generator), generator=generator)
    assert chains.gradients == sum(spent)


@pytest.mark.parametrize("name", EVERY)
def test_a_column_of_energies_is_refused(name, generator):
    with pytest.raises(InputError, match=r"\(7, 1\).*\(7,\)"):
        run_chains(EVERY[name], lambda x: x.sum(1, keepdim=True), starts(name, (7, 2), generator), generator=generator)


# the driver that all kernels share keeps the records
@pytest.mark.parametrize("name", ["Langevin", "MALA"])
def test_memory_does_not_grow(name, generator):
    live, steps = [], 5000

    def count(i, x):
        # one step past a flush of the records, early and late
        if i in (65, steps // 64 * 64 + 1):
            gc.collect()
            tensors = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor)]
            # other tests leave lazy layers behind, whose parameters have no size
            tensors = [thing for thing in tensors if not is_lazy(thing)]
            live.append((len(tensors), sum(thing.numel() for thing in tensors)))

    x = starts(name, (2, 2), generator)
    run_chains(EVERY[name], quadratic, x, steps, generator=generator, callback=count)
    (tensors, numbers), (later_tensors, later_numbers) = live
    assert later_tensors <= tensors + 5
    assert later_numbers <= numbers + 50
