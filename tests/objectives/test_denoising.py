import math

import pytest
import torch
from torch import nn

from adance.energies import MLP
from adance.errors import InputError
from adance.objectives import DenoisingScoreMatching, Setting


class Bowl(nn.Module):
    """½a‖x − b‖² for events of any shape."""

    def __init__(self, a=1.0, b=0.0):
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a, dtype=torch.float64))
        self.b = nn.Parameter(torch.tensor(b, dtype=torch.float64))

    def forward(self, x):
        return 0.5 * self.a * (x - self.b).square().flatten(1).sum(1)


def seed(number=7):
    return torch.Generator().manual_seed(number)


def draws(shape, number=3):
    return torch.randn(shape, generator=seed(number), dtype=torch.float64)


def gradients(value, energy):
    found = torch.autograd.grad(value, list(energy.parameters()), materialize_grads=True, allow_unused=True)
    return torch.cat([g.flatten() for g in found])


@pytest.mark.parametrize("sigma", [0.3, [0.2, 0.5, 1.0]])
def test_it_is_the_textbook_form_times_the_variance(sigma):
    energy, x = MLP((3,), (16,)).double(), draws((8, 3))
    out = DenoisingScoreMatching(sigma).loss(energy, x, seed())
    generator, sigmas = seed(), torch.tensor([sigma] if isinstance(sigma, float) else sigma, dtype=torch.float64)
    s = sigmas[torch.randint(len(sigmas), (8,), generator=generator)][:, None]
    noised = x + s * torch.randn(x.shape, generator=generator, dtype=torch.float64)
    noised.requires_grad_()
    (gradient,) = torch.autograd.grad(energy(noised).sum(), noised)
    kernel_score = (x - noised) / s**2
    right = (s.squeeze(1) ** 2 * 0.5 * (-gradient - kernel_score).square().sum(1)).mean()
    torch.testing.assert_close(out.value.detach(), right.detach())
    torch.testing.assert_close(out.energy_data, energy(noised).detach())


def explicit_gradient(energy, data, sigmas, weights):
    """Of E½(s − ∇log p)² over p, the mixture of Parzen densities of ``data`` ``(N,)``, by quadrature on a line."""
    grid = torch.linspace(-9, 9, 6001, dtype=torch.float64)
    with torch.enable_grad():
        leaf = grid.clone().requires_grad_()
        density = torch.zeros_like(grid)
        for s, w in zip(sigmas, weights, strict=True):
            kernel = torch.distributions.Normal(data, s).log_prob(leaf[:, None]).exp()
            density = density + w / sum(weights) * kernel.mean(1)
        (slope,) = torch.autograd.grad(density.sum(), leaf)
    density = density.detach()
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1, abs=1e-6)
    x = grid[:, None].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(energy(x).sum(), x, create_graph=True)
    gaps = -gradient.squeeze(1) - slope / density.clamp(min=1e-300)
    return gradients((0.5 * density * gaps.square()).sum() * (grid[1] - grid[0]), energy)


@pytest.mark.parametrize(
    ("sigma", "weights"), [([0.5], None), ([0.3, 0.8], None), ([0.3, 0.8], [1.0, 1.0]), ([0.4, 0.6], [3.0, 1.0])]
)
def test_gradient_is_that_of_matching_the_parzen_density(sigma, weights):
    # A.1 for one σ. For several, Σ w_σ E_{p_σ}½‖s − ∇log p_σ(x̃|x)‖² and the same for the mixture differ by a constant,
    # since Σ w_σ p_σ ∇log p_σ is the gradient of the mixture.
    energy = MLP((1,), (8, 8), base=True).double()
    data = torch.tensor([-1.5, -1.2, 0.1, 0.9, 2.0], dtype=torch.float64)
    objective = DenoisingScoreMatching(sigma, weights)
    shares = [s**2 for s in sigma] if weights is None else weights
    factors = [w / s**2 for w, s in zip(shares, sigma, strict=True)]
    scale = sum(shares) / sum(factors)
    right = scale * explicit_gradient(energy, data, sigma, shares)
    generator, rows = seed(), data.repeat(1000)[:, None]
    found = torch.stack([gradients(objective.loss(energy, rows, generator).value, energy) for _ in range(200)])
    error, spread = found.mean(0) - right, found.std(0) / math.sqrt(len(found))
    assert (error.abs() <= 5 * spread + 1e-9).all()
    assert error.norm() < 0.05 * right.norm()


@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_recovers_the_mean_and_the_variance_plus_that_of_the_noise(sigma):
    # The fit is the regression of ξ on x̃: with residual variance s²/(s² + σ²), independent of x̃, the standard
    # deviations are s/(σ√n) for a, relative, and s·√(s² + σ²)/(σ√n) for b.
    n, s = 40_000, 0.5
    data, energy, objective = 1 + s * draws((n, 1)), Bowl(2.0, 0.3), DenoisingScoreMatching(sigma)
    optimizer = torch.optim.LBFGS(
        energy.parameters(), max_iter=60, line_search_fn="strong_wolfe", tolerance_change=1e-12
    )

    def closure():
        optimizer.zero_grad()
        value = objective.loss(energy, data, seed()).value
        value.backward()
        return value

    optimizer.step(closure)
    variance = s**2 + sigma**2
    assert abs(energy.a.item() * variance - 1) < 5 * s / (sigma * math.sqrt(n))
    assert abs(energy.b.item() - 1) < 5 * s * math.sqrt(variance) / (sigma * math.sqrt(n))


def test_several_sigma_recover_the_moments_of_the_stated_mixture():
    # Matching a normal family to p minimizes E½‖a(x − b) + ∇log p‖²: a = 1/Var, for any p. So a is 1 over the
    # variance of the mixture. Five standard deviations, from the spread over ten batches.
    s, sigmas = 0.5, [0.3, 1.0]
    for weights, shares in ((None, [0.09, 1.0]), ([1.0, 1.0], [1.0, 1.0]), ([9.0, 1.0], [9.0, 1.0])):
        objective = DenoisingScoreMatching(sigmas, weights)
        variance = sum(w * (s**2 + t**2) for w, t in zip(shares, sigmas, strict=True)) / sum(shares)
        energy = Bowl(1 / variance, 1.0)
        slopes = []
        for i in range(10):
            out = objective.loss(energy, 1 + s * draws((20_000, 1), i), seed(i))
            slopes.append(torch.stack(torch.autograd.grad(out.value, [energy.a, energy.b])))
        mean, spread = torch.stack(slopes).mean(0), torch.stack(slopes).std(0) / math.sqrt(10)
        assert (mean.abs() < 5 * spread).all()
        assert (spread < 0.01).all()


def test_rows_draw_their_own_sigma_and_noise_of_that_width():
    class Recorder(nn.Module):
        def forward(self, x):
            self.seen = x.detach()
            return x.square().sum(1)

    energy = Recorder()
    DenoisingScoreMatching([0.1, 1.0, 10.0]).loss(energy, torch.zeros(3000, 50), seed())
    widths = energy.seen.std(1)
    counts = [((widths > 0.5 * s) & (widths < 2 * s)).sum().item() for s in (0.1, 1.0, 10.0)]
    assert sum(counts) == 3000
    # Binomial with standard deviation √(3000·2/9) = 26.
    assert all(abs(count - 1000) < 130 for count in counts)


def test_piecewise_linear_energies_serve():
    energy = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0))
    out = DenoisingScoreMatching().loss(energy, torch.randn(32, 1, 4, 4, generator=seed()), seed())
    out.value.backward()
    assert all(p.grad is not None for p in energy.parameters())
    assert energy[1].weight.grad.abs().max() > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_output_and_metrics(dtype):
    energy, x = MLP((1, 4, 4), (8,)).to(dtype), draws((6, 1, 4, 4)).to(dtype)
    objective = DenoisingScoreMatching((0.1, 0.2))
    out = objective.loss(energy, x, seed())
    assert out.value.dtype == out.energy_data.dtype == dtype
    assert (out.energy_data.shape, out.energy_noise.shape) == ((6,), (0,))
    assert set(out.metrics) == {"loss", "energy_data", "score_norm"}
    assert not any(value.requires_grad for value in out.metrics.values())
    assert objective.kernel(Setting((1, 4, 4), 6)) is None
    assert objective.log_normalizer() is None
    assert objective.state_dict() == {}


def test_power_iteration_is_held_in_the_loss():
    energy = MLP((1, 2, 2), (8,)).train()
    before = {name: value.clone() for name, value in energy.named_buffers()}
    DenoisingScoreMatching().loss(energy, torch.zeros(4, 1, 2, 2), seed()).value.backward()
    assert before
    assert all(torch.equal(value, before[name]) for name, value in energy.named_buffers())


def test_seeded_losses_repeat_and_leave_the_global_generator():
    energy, x = MLP((3,), (8,)).double(), draws((4, 3))
    before = torch.get_rng_state()
    one, two, other = (DenoisingScoreMatching([0.1, 0.2]).loss(energy, x, seed(s)).value for s in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "settings",
    [
        {"sigma": 0.0},
        {"sigma": []},
        {"sigma": [0.1, -1.0]},
        {"sigma": math.nan},
        {"sigma": math.inf},
        {"sigma": 0.1, "weights": [1.0, 2.0]},
        {"sigma": [0.1, 0.2], "weights": [1.0, 0.0]},
        {"sigma": [0.1, 0.2], "weights": []},
    ],
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError) as caught:
        DenoisingScoreMatching(**settings)
    assert "\n" not in str(caught.value)
