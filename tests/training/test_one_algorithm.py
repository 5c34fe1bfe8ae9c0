"""Two processes compute what one computes on the combined batch: gradients, weights, triggers, metrics."""

import os

import pytest
import torch
from ranks import together
from torch import distributed, nn

from adance.contrasts import KL, LeastSquares
from adance.distributed import rank, world_size
from adance.energies import MLP, ConvNet
from adance.energies.energy import unwrap
from adance.noises.noise import NoiseSample
from adance.objectives import BRM, NCE, AdaBRM, AdaNCE, MaximumLikelihood, RankingNCE, ScoreMatching
from adance.samplers import MALA, Langevin
from adance.samplers.buffer import ReplayBuffer

pytestmark = pytest.mark.xdist_group("ranks")

ROWS = 128
WALK = Langevin(steps=1, step_size=1.0, noise_std=0.005)
MOVE = MALA(steps=1, step_size=0.02)

CHAINS = {"buffer": 1024, "rejuvenation": 0.1, "center": True}

OBJECTIVES = {
    "AdaNCE, K = 10": AdaNCE(WALK, interval=10, ratio_temperature=0.05, **CHAINS),
    "AdaNCE, K = 50": AdaNCE(WALK, interval=50, ratio_temperature=0.05, snapshots=3, **CHAINS),
    "AdaNCE, auto": AdaNCE(WALK, interval="auto", ratio_temperature=0.02, **CHAINS),
    "AdaNCE, auto, reweighted": AdaNCE(MOVE, interval="auto", start="reweighted", buffer=1024),
    "NCE": NCE(),
    "maximum likelihood": MaximumLikelihood(WALK, buffer=1024, energy_penalty=0.1),
    "AdaNCE at T = 0": AdaNCE(WALK, interval=10, ratio_temperature=0.0, **CHAINS),
    "AdaBRM": AdaBRM(KL(), sampler=WALK, interval=10, **CHAINS),
    "corrected BRM": BRM(LeastSquares(ratio_bound=1.5)),
    "ranking": RankingNCE(noises=3),
    "score matching": ScoreMatching("exact"),
}
MAIN = list(OBJECTIVES)[:6]


class Recorded:
    """Noise samples that are a function of the step, of which each process takes its part."""

    def __init__(self, noise):
        self.noise, self.step = noise, 0

    def __call__(self, n, data, generator=None, condition=None):
        self.step += 1
        draws = torch.Generator().manual_seed(100_000 + self.step)
        x = torch.randn(n * world_size(), *data.shape[1:], generator=draws, dtype=data.dtype)
        return NoiseSample(x[rank() * n :][:n] + 3, getattr(self.noise, "is_model", False))


def train(name, steps, shape=(2,)):
    """Gradient of the first step, all weights after the last, refreshes and metrics, in float64."""
    torch.manual_seed(0)
    energy = (MLP(shape, [16], spectral_norm=True) if len(shape) == 1 else ConvNet(shape)).double()
    rows = ROWS // world_size()
    generator = torch.Generator().manual_seed(rank())
    events = torch.randn(1000, *shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    objective = OBJECTIVES[name].build(energy, events, batch_size=rows, generator=generator)
    if hasattr(objective, "noise"):
        objective.noise.sample = Recorded(objective.noise)
    if world_size() > 1:
        energy = nn.parallel.DistributedDataParallel(energy)
    weights = [*energy.parameters(), *objective.own_parameters()]
    optimizer = torch.optim.Adam(weights, 1e-3, (0.0, 0.99))
    gradients, history = [], []
    for step in range(1, steps + 1):
        chosen = torch.randint(1000, (ROWS,), generator=torch.Generator().manual_seed(step))
        out = objective.loss(energy, events[chosen[rank() * rows :][:rows]], generator)
        optimizer.zero_grad()
        out.value.backward()
        for weight in objective.own_parameters():
            if world_size() > 1:
                distributed.all_reduce(weight.grad)
                weight.grad /= world_size()
        if step in (1, steps):
            gradients.append(torch.cat([weight.grad.flatten() for weight in weights]))
            history.append({key: float(value) for key, value in out.metrics.items() if key != "energy_gradients"})
        optimizer.step()
        objective.after_step(energy, step, out)
    state = {key: value.clone() for key, value in unwrap(energy).state_dict().items()}
    return {"gradients": gradients, "metrics": history, "weights": state}


def train_all(names, steps, shape=(2,)):
    if "WORLD_SIZE" in os.environ:
        distributed.init_process_group("gloo")
    return {name: train(name, steps, shape) for name in names}


def compare(names, steps, folder, shape=(2,)):
    alone = train_all(names, steps, shape)
    for ranks in together(train_all, names, steps, shape, folder=folder):
        for name in names:
            one, two = alone[name], ranks[name]
            assert one["gradients"][0].norm() > 0
            for a, b in zip(one["gradients"], two["gradients"], strict=True):
                assert (a - b).norm() <= 1e-6 * a.norm(), name
            for a, b in zip(one["metrics"], two["metrics"], strict=True):
                assert b == pytest.approx(a, rel=1e-6, abs=1e-9), name
            for key, value in one["weights"].items():
                assert (value - two["weights"][key]).abs().max() <= 1e-4, (name, key)
    return alone


def resample():
    distributed.init_process_group("gloo")
    buffer = ReplayBuffer(torch.arange(8.0).view(8, 1) + 8 * rank())
    buffer.resample(buffer.samples.flatten() / 4, torch.Generator().manual_seed(7 * rank()))
    return buffer.samples


def test_chains_of_all_processes_are_resampled_together(tmp_path):
    joined = ReplayBuffer(torch.arange(16.0).view(16, 1))
    joined.resample(joined.samples.flatten() / 4, torch.Generator().manual_seed(0))
    first, second = together(resample, folder=tmp_path)
    assert torch.equal(torch.cat([first, second], 1).flatten(), joined.samples.flatten())


def test_two_processes_equal_one_at_the_joined_batch(tmp_path):
    compare(list(OBJECTIVES), 12, tmp_path)


@pytest.mark.hardening
@pytest.mark.parametrize("name", MAIN)
def test_two_processes_equal_one_after_200_steps(name, tmp_path):
    alone = compare([name], 200, tmp_path)
    if name == "AdaNCE, auto":
        assert alone[name]["metrics"][-1]["refreshes"] > 200 / 50  # some triggered by the batch


@pytest.mark.hardening
def test_two_processes_equal_one_for_a_convolutional_net(tmp_path):
    compare(MAIN[:3], 4, tmp_path, (1, 8, 8))
