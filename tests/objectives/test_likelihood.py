import copy
import math

import pytest
import torch
from torch import nn

from adance.energies import MLP, freeze
from adance.errors import InputError
from adance.objectives import AdaNCE, ContrastiveDivergence, MaximumLikelihood, PersistentCD, Setting
from adance.samplers import MALA, Langevin, run_chains

SHAPE = (1, 3, 3)
DATA = torch.rand(32, *SHAPE, generator=torch.Generator().manual_seed(3)) * 2 - 1
STARTS = ("noise", "data", "persistent", "rejuvenated")


def net(dtype=torch.float64):
    return MLP(SHAPE, (16, 16)).to(dtype)


def chain():
    return Langevin(3, 1.0, noise_std=0.05)


def descent(steps=3):
    """A chain without noise."""
    return Langevin(steps, 0.1, noise_std=0.0)


def seed(number=7):
    return torch.Generator().manual_seed(number)


def built(recipe, energy, data=DATA, batch=8):
    data = data.to(next(energy.parameters()).dtype)
    return recipe.build(energy, data, batch_size=batch, generator=seed(1))


def gradients(value, energy):
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, list(energy.parameters()))])


def makers():
    return {
        "noise": lambda s: MaximumLikelihood(s, "noise"),
        "data": lambda s: MaximumLikelihood(s, "data"),
        "persistent": lambda s: MaximumLikelihood(s, "persistent", buffer=200),
        "rejuvenated": lambda s: MaximumLikelihood(s, buffer=200),
        "cd": lambda s: ContrastiveDivergence(2, s),
        "pcd": lambda s: PersistentCD(2, s),
        "pcd of many": lambda s: PersistentCD(None, s, chains=30),
    }


NAMES = tuple(makers())


@pytest.mark.parametrize("penalty", [0.0, 0.3])
@pytest.mark.parametrize("start", STARTS)
def test_it_is_adance_with_a_snapshot_at_every_step(start, penalty):
    settings = {"start": start, "buffer": 200, "energy_penalty": penalty}
    energy, twin, x = net(), net(), DATA[:8].double()
    twin.load_state_dict(energy.state_dict())
    one = built(MaximumLikelihood(chain(), **settings), energy)
    two = built(AdaNCE(chain(), interval=1, **settings), twin)
    one_generator, two_generator = seed(), seed()
    optimizers = [torch.optim.SGD(e.parameters(), 0.05) for e in (energy, twin)]
    for step in (1, 2, 3):
        first, second = one.loss(energy, x, one_generator), two.loss(twin, x, two_generator)
        assert torch.equal(first.energy_data, second.energy_data)
        assert torch.equal(first.energy_noise, second.energy_noise)
        right = gradients(second.value, twin)
        assert right.abs().max() > 1e-3
        torch.testing.assert_close(gradients(first.value, energy), right, rtol=1e-12, atol=1e-14)
        for objective, model, optimizer, generator in (
            (one, energy, optimizers[0], seed(step)),
            (two, twin, optimizers[1], seed(step)),
        ):
            optimizer.zero_grad()
            out = objective.loss(model, x, generator)
            out.value.backward()
            optimizer.step()
            objective.after_step(model, step, out)
        twin.load_state_dict(energy.state_dict())  # keep rounding from growing


def test_value_is_the_gap_of_mean_energies_with_the_penalty():
    energy, x = net(), DATA[:8].double()
    plain = built(MaximumLikelihood(chain(), buffer=200), energy).loss(energy, x, seed())
    gap = plain.energy_data.mean() - plain.energy_noise.mean()
    torch.testing.assert_close(plain.value.detach(), gap)
    bent = built(MaximumLikelihood(chain(), buffer=200, energy_penalty=0.3), energy).loss(energy, x, seed())
    squares = plain.energy_data.square().mean() + plain.energy_noise.square().mean()
    torch.testing.assert_close(bent.value.detach(), gap + 0.3 * squares)


def noise_of(objective, energy, x):
    """The samples that the next loss draws."""
    return copy.deepcopy(objective).noise.sample(len(x), x, seed(5)).x


@pytest.mark.parametrize("k", [1, 4])
def test_contrastive_divergence_takes_k_steps_from_the_batch(k):
    energy, x = net(), DATA[:8].double()
    objective = built(ContrastiveDivergence(k, descent()), energy)
    right = run_chains(descent(k), freeze(energy), x).x
    found = noise_of(objective, energy, x)
    rows = [found.flatten(1).sum(1).sort().indices, right.flatten(1).sum(1).sort().indices]
    torch.testing.assert_close(found[rows[0]], right[rows[1]])
    out = objective.loss(energy, x, seed(5))
    torch.testing.assert_close(out.energy_noise, freeze(energy)(found))
    assert out.metrics["energy_gradients"] == 8 * k


def test_the_sampler_keeps_its_own_steps_for_sampling():
    images, vectors = Setting(SHAPE, 4), Setting((3,), 20)
    for recipe in (ContrastiveDivergence(2, MALA(15)), PersistentCD(2, MALA(15)), MaximumLikelihood(MALA(15))):
        assert recipe.kernel(images).steps == recipe.resolve(images).sampler.steps == 15
        objective = built(recipe, net(torch.float32), batch=4)
        assert objective.noise.chains.kernel.steps == (15 if type(recipe) is MaximumLikelihood else 2)
    kernel = ContrastiveDivergence().kernel(vectors)
    noise = built(ContrastiveDivergence(), MLP((3,), (4,)), torch.randn(20, 3, generator=seed())).noise
    assert isinstance(kernel, MALA)
    assert (kernel.steps, noise.chains.kernel.steps, noise.temperature) == (50, 1, 1.0)
    assert built(MaximumLikelihood(), net(torch.float32)).noise.temperature == pytest.approx(1.25e-5)


def test_persistent_chains_go_on_from_where_they_were():
    energy, x = net(), DATA[:8].double()
    objective = built(PersistentCD(2, descent()), energy)
    chains = objective.noise.chains.starts.buffer.samples
    assert chains.shape == (8, *SHAPE)
    for step in (1, 2, 3):
        right = run_chains(descent(2), freeze(energy), chains.clone()).x
        out = objective.loss(energy, x, seed(step))
        torch.testing.assert_close(chains, right)
        assert torch.equal(
            objective.noise.pool.samples.sum((1, 2, 3)).sort().values, chains.sum((1, 2, 3)).sort().values
        )
        with torch.no_grad():
            energy.net[1].bias += 0.1
        objective.after_step(energy, step, out)


def test_more_persistent_chains_than_a_batch():
    energy = net()
    objective = built(PersistentCD(1, descent(), chains=30), energy)
    before = objective.noise.chains.starts.buffer.samples.clone()
    objective.loss(energy, DATA[:8].double(), seed())
    moved = (objective.noise.chains.starts.buffer.samples != before).flatten(1).any(1)
    assert (len(before), moved.sum()) == (30, 8)
    with pytest.raises(InputError, match="a buffer of 5 is smaller"):
        built(PersistentCD(chains=5), energy)


def test_defaults():
    setting = Setting(SHAPE, 8)
    assert MaximumLikelihood().resolve(setting).start == "rejuvenated"
    assert MaximumLikelihood().resolve(setting).buffer == 5000
    assert ContrastiveDivergence().resolve(setting).k == 1
    assert PersistentCD().k is None
    assert PersistentCD().resolve(setting).k == 30
    objective, cd, pcd = (
        built(recipe, net()) for recipe in (MaximumLikelihood(), ContrastiveDivergence(), PersistentCD())
    )
    starts = [objective.noise.chains.starts.kind, cd.noise.chains.starts.kind, pcd.noise.chains.starts.kind]
    assert starts == ["rejuvenated", "data", "persistent"]
    assert (len(objective.noise.chains.starts.buffer.samples), objective.noise.rule.interval) == (5000, 1)
    assert objective.own_parameters() == objective.adversary_parameters() == []
    assert objective.log_normalizer() is None


def test_metrics():
    energy, x = net(), DATA[:8].double()
    objective = built(MaximumLikelihood(chain(), buffer=200), energy)
    out = objective.loss(energy, x, seed())
    names = {"loss", "energy_data", "energy_noise", "auc"}
    assert set(out.metrics) == names | {"gradient_norm", "acceptance", "restarted_chains", "energy_gradients"}
    assert out.metrics["loss"] == out.value.detach()
    assert out.metrics["energy_noise"] == out.energy_noise.mean()
    below = (out.energy_data[:, None] < out.energy_noise).double().mean()
    assert out.metrics["auc"].item() == pytest.approx(below.item())
    assert not any(value.requires_grad for value in out.metrics.values())


@pytest.mark.parametrize("name", NAMES)
def test_gradients_reach_every_weight_and_nothing_else(name):
    energy = net(torch.float32).train()
    vectors = [value.clone() for value in energy.buffers()]
    objective = built(makers()[name](chain()), energy)
    objective.loss(energy, DATA[:8], seed()).value.backward()
    weights = [p for n, p in energy.named_parameters() if n != f"net.{len(energy.net) - 1}.bias"]
    assert all(p.grad.abs().max() > 0 for p in weights)
    assert all(p.grad is None and not p.requires_grad for p in objective.noise.frozen.parameters())
    assert all(torch.equal(a, b) for a, b in zip(energy.buffers(), vectors, strict=True))
    assert all(module.training for module in energy.modules())


def losses(objective, energy, generator, steps, first=1):
    optimizer, found = torch.optim.SGD(energy.parameters(), 0.05), []
    for step in range(first, first + steps):
        rows = torch.randint(len(DATA), (8,), generator=generator)
        out = objective.loss(energy, DATA[rows], generator)
        optimizer.zero_grad()
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step, out)
        found.append(out.value.item())
    return found


@pytest.mark.parametrize("sampler", [chain, lambda: MALA(3, 2.0)])
@pytest.mark.parametrize("name", NAMES)
def test_state_goes_on_as_if_nothing_had_happened(name, sampler):
    energy, generator = net(torch.float32), seed()
    objective = built(makers()[name](sampler()), energy)
    losses(objective, energy, generator, 3)
    other_energy = net(torch.float32)
    other = built(makers()[name](sampler()), other_energy)
    other.load_state_dict(copy.deepcopy(objective.state_dict()))
    other_energy.load_state_dict(copy.deepcopy(energy.state_dict()))
    other_generator = seed()
    other_generator.set_state(generator.get_state())
    one = losses(objective, energy, generator, 4, 4)
    assert losses(other, other_energy, other_generator, 4, 4) == one


@pytest.mark.parametrize("name", NAMES)
def test_seeded_losses_repeat_and_leave_the_global_generator(name):
    energy = net(torch.float32)
    before = torch.get_rng_state()
    runs = []
    for number in (1, 1, 2):
        model = copy.deepcopy(energy)
        runs.append(losses(built(makers()[name](chain()), model), model, seed(number), 2))
    assert runs[0] == runs[1] != runs[2]
    assert torch.equal(torch.get_rng_state(), before)


class Parabola(nn.Module):
    """½a(x − b)²."""

    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.tensor([1.0, 0.5]))

    def forward(self, x):
        a, b = self.weights
        return 0.5 * a * (x - b).square().sum(1)


def estimate(recipe, data, steps=400):
    """Averages of a and b over the last quarter of a run whose rate falls to 0, with all data in every batch."""
    energy, generator, averaged = Parabola(), seed(), torch.zeros(2)
    objective = recipe.build(energy, data, generator=generator)
    optimizer = torch.optim.Adam(energy.parameters(), 0.1)
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / (steps + 1))
        optimizer.zero_grad()
        out = objective.loss(energy, data, generator)
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step, out)
        averaged += energy.weights.detach() / (steps // 4) if step > steps - steps // 4 else 0
    return averaged.tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: MaximumLikelihood(MALA(5, 0.3), buffer=4000),
        lambda: MaximumLikelihood(MALA(8, 0.3), "noise"),
        lambda: PersistentCD(5, MALA(step_size=0.3)),
        lambda: ContrastiveDivergence(2, MALA(step_size=0.3)),
    ],
    ids=["rejuvenated", "noise", "persistent", "contrastive divergence"],
)
def test_recovers_mean_and_precision_of_a_normal_law(make):
    # The likelihood's own estimates have standard deviations √(2/n) for 1/a, relative, and s/√n for b. The 4,000
    # chains of a step are as many as the data, so one step's noise is as large; averaged over 100 steps, whose chains
    # are dependent, it is at most a third of it. The distance to the sample's own moments is that third, five-fold.
    n, s = 4000, 0.5
    data = 1 + s * torch.randn(n, 1, generator=seed(11))
    a, b = estimate(make(), data)
    spread, mean_spread = math.sqrt(2 / n), s / math.sqrt(n)
    assert 1 / (a * s**2) == pytest.approx(1, abs=5 * 1.06 * spread)
    assert b == pytest.approx(1, abs=5 * 1.06 * mean_spread)
    assert 1 / (a * data.var(correction=0).item()) == pytest.approx(1, abs=5 / 3 * spread)
    assert b == pytest.approx(data.mean().item(), abs=5 / 3 * mean_spread)


@pytest.mark.parametrize("k", [1, 3])
def test_unadjusted_contrastive_divergence_finds_its_chain_s_own_law(k):
    # One step of size h takes a variance s² to (1 − ha)²s² + 2h, which is s² where 1/(a(1 − ha/2)) = s², for any k.
    n, h = 4000, 0.3
    data = 1 + torch.randn(n, 1, generator=seed(11))
    a, b = estimate(ContrastiveDivergence(k, Langevin(step_size=h, temperature=1.0)), data)
    assert 1 / (a * (1 - h * a / 2)) == pytest.approx(data.var(correction=0).item(), rel=5 / 3 * math.sqrt(2 / n))
    assert b == pytest.approx(data.mean().item(), abs=5 / 3 / math.sqrt(n))
    assert a > 1.1


def test_double_precision_is_kept():
    energy = net()
    out = built(MaximumLikelihood(chain(), buffer=50), energy).loss(energy, DATA[:8].double(), seed())
    assert out.value.dtype == out.energy_noise.dtype == torch.float64


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (MaximumLikelihood, {"energy_penalty": -1.0}),
        (MaximumLikelihood, {"energy_penalty": math.nan}),
        (MaximumLikelihood, {"rejuvenation": 2.0}),
        (MaximumLikelihood, {"start": "nowhere"}),
        (ContrastiveDivergence, {"k": 0}),
        (PersistentCD, {"k": 0}),
        (PersistentCD, {"chains": 0}),
    ],
)
def test_bad_settings_are_refused(make, settings):
    with pytest.raises(InputError) as caught:
        make(**settings)
    assert "\n" not in str(caught.value)
