import math

import pytest
import torch

from adance.energies.analytic import Gaussian, Uniform
from adance.errors import InputError
from adance.evaluation.ais import Bridge, anneal_forward, plan
from adance.evaluation.log_z import Bracket, bracket_log_z
from adance.samplers.resampling import LogMean

D = 20
LOG_Z = D / 2 * math.log(2 * math.pi)


class Mixture:
    """Five normal laws of deviation 1 in 20 dimensions, some 6 apart, without their constant (2π)^{−10}."""

    def __init__(self, seed=0):
        self.generator = torch.Generator().manual_seed(seed)
        self.means = torch.randn(5, D, generator=self.generator)
        self.weights = torch.tensor([0.1, 0.3, 0.2, 0.25, 0.15])

    def energy(self, x):
        squares = (x[:, None] - self.means).square().sum(2)
        return -torch.logsumexp(self.weights.log() - squares / 2, 1)

    def sample(self, n):
        which = torch.multinomial(self.weights, n, replacement=True, generator=self.generator)
        return self.means[which] + torch.randn(n, D, generator=self.generator)


def broad():
    return Gaussian(torch.zeros(D), torch.full((D,), 1.5))


@pytest.mark.parametrize("seed", [0, 1])
def test_the_bracket_of_a_mixture_in_20_dimensions_holds_log_z(seed):
    mixture, generator = Mixture(seed), torch.Generator().manual_seed(seed)
    bridge = Bridge(mixture.energy, broad())
    schedule = plan(bridge, target=0.999, generator=generator)
    found = bracket_log_z(bridge, mixture.sample(1000), exact=True, schedule=schedule, generator=generator)
    assert found.lower < LOG_Z < found.upper
    assert found.width < 0.3
    assert found.closed
    assert "no strict bound" not in found.verdict


def test_log_z_at_a_temperature_is_of_the_tempered_energy(generator):
    """exp(−½‖x‖²/T) integrates to (2πT)^{D/2}."""
    bridge = Bridge(lambda x: 0.5 * x.square().sum(1), Gaussian(torch.zeros(3), torch.ones(3)), temperature=0.25)
    starts = 0.5 * torch.randn(500, 3, generator=generator)
    found = bracket_log_z(bridge, starts, exact=True, generator=generator)
    assert found.lower < 1.5 * math.log(2 * math.pi * 0.25) < found.upper
    assert found.width < 0.3


def test_log_z_in_a_box_needs_no_walls(generator):
    """exp(−Σaᵢxᵢ) on [−1, 1]⁴: the product of 2·sinh(aᵢ)/aᵢ; its mass leans on the walls."""
    a = torch.tensor([0.5, 2.0, -3.0, 4.0])
    log_z = float((2 * a.sinh() / a).log().sum())

    def energy(x):
        assert x.abs().max() <= 1 + 1e-6
        return x @ a

    u = torch.rand(500, 4, generator=generator)
    exact = -((torch.exp(a) - u * (torch.exp(a) - torch.exp(-a))).log()) / a  # inverse distribution function
    found = bracket_log_z(Bridge(energy, Uniform((4,))), exact, exact=True, generator=generator)
    assert found.lower < log_z < found.upper
    assert found.width < 0.5


def test_the_forward_run_ends_at_samples_of_the_model(generator):
    mixture = Mixture()
    bridge = Bridge(mixture.energy, broad())
    _, ends = anneal_forward(bridge, plan(bridge, target=0.995, generator=generator), 1000, generator=generator)
    # The energy of 1,000 exact samples has mean 10 and deviation 3.2, so both means have an error of 0.1.
    assert float(mixture.energy(ends).mean()) == pytest.approx(
        float(mixture.energy(mixture.sample(1000)).mean()), abs=0.5
    )


def test_temperatures_rise_at_a_constant_effective_sample_size(generator):
    mixture = Mixture()
    schedule = plan(Bridge(mixture.energy, broad()), target=0.99, generator=generator)
    betas = torch.tensor(schedule.betas)
    assert schedule.complete
    assert schedule.betas[0] == 0
    assert schedule.betas[-1] == 1
    assert (betas.diff() > 0).all()
    assert len(schedule.step_sizes) == len(betas) - 1


def test_a_schedule_that_runs_out_says_that_it_is_no_estimate(generator):
    mixture = Mixture()
    bridge = Bridge(mixture.energy, broad())
    schedule = plan(bridge, max_temperatures=5, generator=generator)
    assert not schedule.complete
    assert schedule.betas[-1] == 1
    found = bracket_log_z(bridge, mixture.sample(100), exact=True, schedule=schedule, generator=generator)
    assert not found.closed
    assert "not an estimate" in found.verdict
    assert "temperatures ran out" in found.verdict


def bracket(**changed):
    default = {
        "forward": LogMean(1.0, 0.01, 400.0), "backward": LogMean(1.1, 0.01, 400.0),
        "chains": 500, "temperatures": 100, "complete": True, "exact": True,
    }  # fmt: skip
    return Bracket(**{**default, **changed})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"backward": LogMean(3.0, 0.01, 400.0)}, "does not close: it is 2.06 nats wide"),
        ({"forward": LogMean(3.0, 0.01, 400.0)}, "crossed"),
        ({"forward": LogMean(1.0, 0.01, 1.2)}, "rest on 1.2 of 500 chains"),
        ({"forward": LogMean(math.nan, 0.01, 400.0)}, "not a number"),
    ],
)
def test_a_bracket_that_does_not_close_says_that_it_is_no_estimate(changed, words):
    found = bracket(**changed)
    assert not found.closed
    assert found.verdict.startswith("not an estimate")
    assert words in found.verdict


def test_backward_runs_from_chains_are_labeled():
    assert bracket().verdict == "bracket of 0.160 nats"
    assert "not at exact samples: no strict bound" in bracket(exact=False).verdict


def test_the_box_is_folded_by_reflection():
    bridge = Bridge(lambda x: x.sum(1), Uniform((1,)))
    x = torch.tensor([[0.5], [1.25], [-1.5], [3.25], [5.5]])
    assert bridge.place(x).flatten().tolist() == pytest.approx([0.5, 0.75, -0.5, -0.75, 0.5])


def test_a_bridge_needs_a_temperature():
    with pytest.raises(InputError, match="T above 0"):
        Bridge(lambda x: x.sum(1), Uniform((1,)), temperature=0)
