import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from adance.energies import MLP, power_iteration_held
from adance.errors import InputError
from adance.objectives import DenoisingScoreMatching, ScoreMatching, Setting

KINDS = ("exact", "hutchinson", "sliced", "sliced_vr", "finite_difference")


class Bowl(nn.Module):
    """½a‖x − b‖² for events of any shape."""

    def __init__(self, a=1.0, b=0.0):
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a, dtype=torch.float64))
        self.b = nn.Parameter(torch.tensor(b, dtype=torch.float64))

    def forward(self, x):
        return 0.5 * self.a * (x - self.b).square().flatten(1).sum(1)


def smooth_net(shape=(3,), activation="silu", **settings):
    return MLP(shape, (16, 16), activation, **settings).double()


def seed(number=7):
    return torch.Generator().manual_seed(number)


def draws(shape, number=3):
    return torch.randn(shape, generator=seed(number), dtype=torch.float64)


def gradients(value, energy):
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, list(energy.parameters()))])


def hessians(energy, x):
    """Scores ``(B, d)`` and Hessians of log p ``(B, d, d)``, by torch.func, one event at a time."""

    def log_density(z):
        return -energy(z[None])[0]

    d = x[0].numel()
    scores = torch.func.vmap(torch.func.grad(log_density))(x)
    return scores.view(-1, d), torch.func.vmap(torch.func.hessian(log_density))(x).view(-1, d, d)


def deviation(kind, directions, d):
    """Standard deviation of one row's loss for E = ½‖x‖² and x ~ N(0, I).

    With x fixed, ‖x‖² is chi-squared: ½‖x‖² − d has variance d/2. Gaussian v add Var ‖v‖² = 2d to Hutchinson's form.
    Sliced: (vᵀx)² = ‖v‖²z², z ~ N(0, 1), so a row is ‖v‖²(½z² − 1); (½z² − 1) has mean −½ and mean square ¾;
    ‖v‖² is d for Rademacher v, and has mean square d(d + 2) for Gaussian v. The energy is quadratic, so differences
    are exact.
    """
    gaussian = directions == "gaussian"
    if kind in ("sliced", "finite_difference"):
        return math.sqrt(0.75 * (d * (d + 2) if gaussian else d * d) - d * d / 4)
    return math.sqrt(d / 2 + (2 * d if gaussian and kind != "exact" else 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("directions", ["rademacher", "gaussian"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(10,), (1, 4, 4)])
def test_of_a_standard_normal_law_it_is_minus_half_the_axes(shape, kind, directions, dtype):
    n, d = 20_000, math.prod(shape)
    x = draws((n, *shape)).to(dtype)
    objective = ScoreMatching(kind, directions=directions, step=0.1)
    out = objective.loss(Bowl().to(dtype), x, seed())
    assert abs(out.value.item() + d / 2) < 5 * deviation(kind, directions, d) / math.sqrt(n) < 0.6
    assert out.value.dtype == out.energy_data.dtype == dtype


@pytest.mark.parametrize("chunk", [1, 4, 100])
@pytest.mark.parametrize("shape", [(3,), (2, 2, 2)])
def test_exact_is_the_trace_of_the_whole_hessian(shape, chunk):
    energy, x = smooth_net(shape, spectral_norm=False), draws((8, *shape))
    out = ScoreMatching("exact", chunk=chunk).loss(energy, x)
    scores, second = hessians(energy, x)
    traces = second.diagonal(dim1=1, dim2=2).sum(1)
    torch.testing.assert_close(out.value, (0.5 * scores.square().sum(1) + traces).mean())
    assert traces.abs().min() > 1e-4


def directions_of(objective, x):
    return objective._draw(x, seed()).flatten(2)


@pytest.mark.parametrize("directions", ["rademacher", "gaussian"])
@pytest.mark.parametrize("projections", [1, 3])
def test_random_forms_are_their_formulas_and_the_reduced_one_is_hutchinson_s(projections, directions):
    energy, x = smooth_net(), draws((8, 3))
    scores, second = hessians(energy, x)
    values = {}
    for kind in ("hutchinson", "sliced", "sliced_vr"):
        objective = ScoreMatching(kind, projections, directions)
        values[kind] = objective.loss(energy, x, seed()).value
        v = directions_of(objective, x)
        forms = torch.einsum("mbi,bij,mbj->mb", v, second, v)
        squares = (v * scores).sum(2).square() if kind == "sliced" else scores.square().sum(1)
        torch.testing.assert_close(values[kind], (0.5 * squares + forms).mean())
    assert torch.equal(values["sliced_vr"], values["hutchinson"])
    gap = gradients(values["sliced_vr"], energy) - gradients(values["hutchinson"], energy)
    assert not gap.any()


def test_over_all_signs_sliced_and_hutchinson_are_exact(monkeypatch):
    # The mean over all 2³ vectors of signs is the expectation over Rademacher v (A.2), value and gradient alike.
    energy, x = smooth_net(), draws((6, 3))
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 3)
    right = ScoreMatching("exact").loss(energy, x).value
    slopes = gradients(right, energy)
    for kind in ("hutchinson", "sliced"):
        objective = ScoreMatching(kind, projections=8)
        monkeypatch.setattr(objective, "_draw", lambda x, generator: signs[:, None].expand(8, len(x), 3))
        value = objective.loss(energy, x).value
        torch.testing.assert_close(value, right)
        torch.testing.assert_close(gradients(value, energy), slopes)


def test_sliced_has_more_variance_than_hutchinson():
    precision = torch.tensor([[2.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    x = torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64).expand(4000, 3)
    spread = {}

    def energy(x):
        return 0.5 * (x @ precision * x).sum(1)

    for kind in ("hutchinson", "sliced"):
        rows = ScoreMatching(kind)._by_derivatives(energy, x, seed())
        spread[kind] = (0.5 * rows[1] + rows[2]).var().item()
    assert spread["sliced"] > 1.5 * spread["hutchinson"] > 0


@pytest.mark.parametrize("directions", ["rademacher", "gaussian"])
def test_differences_tend_to_sliced_with_the_square_of_the_step(directions):
    energy, x = smooth_net(), draws((16, 3))
    right = ScoreMatching("sliced", 2, directions).loss(energy, x, seed()).value
    limit, errors, slopes = gradients(right, energy), [], []
    for step in (0.02, 0.01, 0.005):
        found = ScoreMatching("finite_difference", 2, directions, step=step).loss(energy, x, seed()).value
        errors.append((found - right).item())
        slopes.append(gradients(found, energy) - limit)
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.03)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.01)
    torch.testing.assert_close(slopes[1], 4 * slopes[2], rtol=0.02, atol=1e-3 * float(slopes[1].abs().max()))
    tiny = ScoreMatching("finite_difference", 2, directions, step=1e-4).loss(energy, x, seed()).value
    assert abs(tiny - right) < 1e-6


def test_rounding_in_single_precision_is_as_small_as_stated():
    energy, x = smooth_net(), draws((64, 3))
    double = ScoreMatching("finite_difference").loss(energy, x, seed())
    # The same directions, since signs come from integers.
    single = ScoreMatching("finite_difference").loss(copy.deepcopy(energy).float(), x.float(), seed())
    assert abs(single.value.item() - double.value.item()) < 1e-7 * double.energy_data.abs().max().item() / 0.01**2


def fit(objective, energy, data):
    optimizer = torch.optim.LBFGS(
        energy.parameters(), max_iter=60, line_search_fn="strong_wolfe", tolerance_change=1e-12
    )

    def closure():
        optimizer.zero_grad()
        value = objective.loss(energy, data, seed()).value
        value.backward()
        return value

    optimizer.step(closure)


@pytest.mark.parametrize(
    ("kind", "directions", "precision", "mean"),
    [
        # With one axis and v = ±1 every form is exact: 1/a is the sample variance, b the sample mean.
        *[(kind, "rademacher", math.sqrt(2), 1.0) for kind in KINDS],
        # Hutchinson: a = Σv²/Σz², whose relative variance is Var(v² − z²)/n = 4/n; b as before.
        ("hutchinson", "gaussian", 2.0, 1.0),
        # Sliced: a = Σv²/Σv²z² and b = Σv²x/Σv²: E[v⁴]·Var(1 − z²) = 6 and E[v⁴]·s² = 3s².
        ("sliced", "gaussian", math.sqrt(6), math.sqrt(3)),
        ("finite_difference", "gaussian", math.sqrt(6), math.sqrt(3)),
    ],
)
def test_recovers_mean_and_precision_of_a_normal_law(kind, directions, precision, mean):
    # Standard deviations of a (relative) and b (in units of s), times √n.
    n, s = 40_000, 0.5
    data = 1 + s * draws((n, 1))
    energy = Bowl(2.0, 0.3)
    fit(ScoreMatching(kind, directions=directions), energy, data)
    assert abs(energy.a.item() * s**2 - 1) < 5 * precision / math.sqrt(n)
    assert abs(energy.b.item() - 1) < 5 * mean * s / math.sqrt(n)


class Quadratic(nn.Module):
    """½(x − b)ᵀP(x − b)."""

    def __init__(self, d):
        super().__init__()
        self.P = nn.Parameter(torch.eye(d, dtype=torch.float64))
        self.b = nn.Parameter(torch.zeros(d, dtype=torch.float64))

    def forward(self, x):
        z = x - self.b
        return 0.5 * ((z @ (self.P + self.P.T) / 2) * z).sum(1)


def test_exact_recovers_a_whole_precision_matrix():
    # The minimizer on a sample is the inverse of its covariance; that of a sample of n has standard deviations
    # √((P_ii·P_jj + P_ij²)/n).
    n = 20_000
    mix = torch.tensor([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [-0.3, 0.5, 1.2]], dtype=torch.float64)
    data = draws((n, 3)) @ mix.T + 1
    energy = Quadratic(3)
    fit(ScoreMatching("exact"), energy, data)
    found = (energy.P + energy.P.T).detach() / 2
    torch.testing.assert_close(found, torch.linalg.inv(data.T.cov(correction=0)), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(energy.b.detach(), data.mean(0), rtol=1e-4, atol=1e-4)
    P = torch.linalg.inv(mix @ mix.T)
    bound = 5 * ((torch.outer(P.diagonal(), P.diagonal()) + P**2) / n).sqrt()
    assert ((found - P).abs() < bound).all()


class Functional(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(4, 4), function

    def forward(self, x):
        return self.function(self.layer(x.flatten(1))).sum(1)


PIECEWISE = [nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(), nn.PReLU(), nn.RReLU(), nn.Hardtanh(), nn.Threshold(0.1, 0.0)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", PIECEWISE, ids=lambda layer: type(layer).__name__)
def test_piecewise_linear_layers_are_refused_by_name(layer, kind):
    energy = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(4, 4), nn.SiLU(), layer), nn.Linear(4, 1))
    with pytest.raises(InputError) as caught:
        ScoreMatching(kind).loss(energy, torch.zeros(3, 4))
    for word in ("'1.2'", type(layer).__name__, kind, "SiLU"):
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("function", [F.relu, torch.relu_, F.leaky_relu, F.hardtanh, torch.nn.functional.relu6])
def test_piecewise_linear_functions_are_refused_by_name(function):
    energy = Functional(function)
    flags = [module.training for module in energy.modules()]
    name = function.__name__.strip("_")
    with pytest.raises(InputError, match="hardtanh" if name == "relu6" else name):
        ScoreMatching().build(energy, torch.zeros(3, 4))
    assert [module.training for module in energy.modules()] == flags


def test_pooling_by_the_maximum_is_refused():
    energy = nn.Sequential(nn.Conv2d(1, 2, 3), nn.SiLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 1))
    with pytest.raises(InputError, match="MaxPool2d"):
        ScoreMatching().build(energy, torch.zeros(3, 1, 4, 4))
    with pytest.raises(InputError, match="max_pool2d"):
        ScoreMatching().build(Functional(lambda h: F.max_pool2d(h.view(-1, 1, 2, 2), 2).flatten(1)), torch.zeros(3, 4))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", [F.softplus, F.silu, torch.tanh, F.gelu, F.elu, torch.sigmoid])
def test_smooth_energies_are_taken_and_every_weight_gets_its_gradient(function, kind):
    energy = Functional(function)
    out = ScoreMatching(kind).loss(energy, torch.randn(5, 4, generator=seed()), seed())
    out.value.backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in energy.parameters())


@pytest.mark.parametrize("objective", [*map(ScoreMatching, KINDS), DenoisingScoreMatching()], ids=lambda o: str(o)[:1])
@pytest.mark.parametrize("event", [(3,), (1, 4, 4)])
def test_gradients_are_right_and_reach_every_weight(objective, event):
    energy, x = smooth_net(event), draws((4, *event))
    value = objective.loss(energy, x, seed()).value
    value.backward()
    assert all(p.grad is not None for p in energy.parameters())
    # The last bias is a constant of the energy: it gets exactly 0.
    assert energy.net[-1].bias.grad.item() == 0
    hidden = [p for name, p in energy.named_parameters() if not name.endswith(f"{len(energy.net) - 1}.bias")]
    assert all(p.grad.abs().max() > 0 for p in hidden)
    weight = next(iter(energy.parameters()))
    row = (0,) * weight.ndim
    slope, h, values = weight.grad[row].item(), 1e-5, []
    with power_iteration_held(energy), torch.no_grad():
        for shift in (h, -2 * h):
            weight[row] += shift
            values.append(objective.loss(energy, x, seed()).value.item())
    # Differences of energies at x ± εv are divided by ε² = 1e-4, and by 2h: 1e-16/(1e-4 · 2e-5) = 5e-8.
    assert (values[0] - values[1]) / (2 * h) == pytest.approx(slope, rel=1e-5, abs=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_power_iteration_is_held_in_the_loss_and_advanced_after_the_step(kind):
    energy = smooth_net((1, 2, 2)).train()
    before = {name: value.clone() for name, value in energy.named_buffers()}
    objective = ScoreMatching(kind)
    out = objective.loss(energy, draws((4, 1, 2, 2)), seed())
    out.value.backward()
    assert before
    assert all(torch.equal(value, before[name]) for name, value in energy.named_buffers())
    assert all(module.training for module in energy.modules())
    objective.after_step(energy, 1, out)
    assert not all(torch.equal(value, before[name]) for name, value in energy.named_buffers())


@pytest.mark.parametrize("kind", KINDS)
def test_seeded_losses_repeat_and_leave_the_global_generator(kind):
    energy, x = smooth_net(), draws((4, 3))
    before = torch.get_rng_state()
    one, two, other = (ScoreMatching(kind).loss(energy, x, seed(s)).value for s in (1, 1, 2))
    assert torch.equal(one, two)
    assert torch.equal(one, other) == (kind == "exact")
    assert torch.equal(torch.get_rng_state(), before)
    assert not x.requires_grad


def test_rademacher_and_gaussian_directions_have_unit_covariance():
    x = torch.zeros(20_000, 3)
    for directions, fourth in (("rademacher", 1.0), ("gaussian", 3.0)):
        v = ScoreMatching(projections=2, directions=directions)._draw(x, seed()).flatten(0, 1)
        # Entries of vvᵀ have variance at most 2: five standard deviations of the mean over 40,000 are 0.036.
        torch.testing.assert_close(v.T @ v / len(v), torch.eye(3), rtol=0, atol=0.036)
        assert v.pow(4).mean().item() == pytest.approx(fourth, rel=0.1)


def test_energies_without_curvature_have_trace_zero():
    class Plane(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.tensor([3.0, 4.0]))

        def forward(self, x):
            return x @ self.w

    for kind in KINDS[:4]:
        out = ScoreMatching(kind).loss(Plane(), torch.randn(5, 2, generator=seed()), seed())
        out.value.backward()
        if kind != "sliced":
            assert out.value.item() == pytest.approx(12.5)


def test_an_energy_with_no_weights_in_its_score_is_evaluated():
    class Frozen(nn.Module):
        def forward(self, x):
            return 2 * x.sum(1)

    assert ScoreMatching("exact").loss(Frozen(), torch.zeros(4, 3)).value.item() == pytest.approx(6)


def test_the_loss_can_be_read_without_gradients():
    energy, x = smooth_net(), draws((4, 3))
    for objective in (*map(ScoreMatching, KINDS), DenoisingScoreMatching()):
        right = objective.loss(energy, x, seed()).value
        with torch.no_grad():
            assert torch.equal(objective.loss(energy, x, seed()).value, right)


@pytest.mark.parametrize("kind", KINDS)
def test_output_and_metrics(kind):
    energy, x = smooth_net(), draws((500, 3))
    objective = ScoreMatching(kind, projections=20)
    out = objective.loss(energy, x, seed())
    torch.testing.assert_close(out.energy_data, energy(x).detach())
    assert out.energy_noise.shape == (0,)
    assert set(out.metrics) == {"loss", "energy_data", "score_norm"}
    assert torch.equal(out.metrics["loss"], out.value.detach())
    root_mean_square = hessians(energy, x)[0].square().sum(1).mean().sqrt().detach()
    torch.testing.assert_close(out.metrics["score_norm"], root_mean_square, rtol=0.05, atol=0)
    assert not any(value.requires_grad for value in out.metrics.values())
    assert objective.kernel(Setting((3,), 4)) is None
    assert objective.log_normalizer() is None
    assert list(objective.parameters()) == []
    assert objective.state_dict() == {}


def test_adding_a_constant_to_the_energy_changes_nothing():
    energy, x = smooth_net(), draws((8, 3))
    before = [ScoreMatching(kind).loss(energy, x, seed()).value for kind in KINDS]
    with torch.no_grad():
        energy.net[-1].bias += 2
    after = [ScoreMatching(kind).loss(energy, x, seed()).value for kind in KINDS]
    torch.testing.assert_close(before, after, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "approximate"},
        {"directions": "uniform"},
        {"projections": 0},
        {"step": 0.0},
        {"step": math.nan},
        {"chunk": 0},
    ],
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError) as caught:
        ScoreMatching(**settings)
    assert "\n" not in str(caught.value)


def test_a_column_of_energies_is_refused():
    for kind in KINDS:
        with pytest.raises(InputError, match=r"\(5, 1\)|\(15, 1\)"):
            ScoreMatching(kind).loss(nn.Sequential(nn.Linear(3, 4), nn.SiLU(), nn.Linear(4, 1)), torch.zeros(5, 3))
