"""The log-ratio of two sets of rows, as a sum over steps from one set to the other (Rhodes et al. 2020)."""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from adance.data.transforms import Standardize
from adance.energies.frozen import freeze
from adance.energies.mixtures import FullGaussian
from adance.energies.mlp import MLP
from adance.energies.student import covariance_of
from adance.objectives.metrics import auc
from adance.objectives.nce import NCE
from adance.randomness import drawing_from
from adance.sklearn.budget import Budget
from adance.sklearn.rows import TableRows
from adance.training.in_memory import Rows, fit_in_memory, loss_on

SEPARATE = 0.99
"""Probability of the right order of a held-out pair above which one step is not enough."""

MANY_BRIDGES = 4
MEASURED_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Waymark:
    """Mixed rows ``√(1 − α²) x₀ + α x₁``: the denominator's at α = 0, the numerator's at α = 1.

    As a density its logarithm is unknown, and 0 stands for it: an energy that is distinguished from it by NCE becomes
    minus the log-ratio.

    Attributes:
        denominator: Rows x₀.
        numerator: Rows x₁.
        share: α.
    """

    denominator: Rows
    numerator: Rows
    share: float

    def draw(self, n: int, generator: torch.Generator) -> Rows:
        """``n`` rows."""
        return Rows(self.sample(n, generator))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` rows ``(n, D)``."""
        if generator is None:
            generator = torch.default_generator
        x = math.sqrt(1 - self.share**2) * self.denominator.draw(n, generator).x
        return x + self.share * self.numerator.draw(n, generator).x

    def log_prob(self, x: Tensor) -> Tensor:
        """Zeros ``(B,)``."""
        return x.new_zeros(len(x))

    def gaussian(self) -> FullGaussian:
        """The normal distribution with the mean and covariance of the mixed rows, from those of both sets."""
        a, b = math.sqrt(1 - self.share**2), self.share
        zero, one = (rows.x.double() for rows in (self.denominator, self.numerator))
        covariance = a**2 * covariance_of(zero) + b**2 * covariance_of(one)
        return FullGaussian(a * zero.mean(0) + b * one.mean(0), covariance)


class NormalLogRatio(nn.Module):
    """The log-ratio of two normal distributions.

    Args:
        numerator: The numerator's.
        denominator: The denominator's.
    """

    def __init__(self, numerator: FullGaussian, denominator: FullGaussian) -> None:
        super().__init__()
        self.numerator, self.denominator = numerator, denominator

    def forward(self, x: Tensor) -> Tensor:
        """The log-ratio ``(B,)`` at ``x`` ``(B, D)``."""
        return self.numerator.log_prob(x) - self.denominator.log_prob(x)


class LinearLogRatio(nn.Module):
    """The log-ratio of a logistic regression, linear in x.

    Args:
        numerator: Rows ``(N₁, D)``.
        denominator: Rows ``(N₀, D)``.
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, numerator: Tensor, denominator: Tensor) -> None:
        super().__init__()
        labels = [1] * len(numerator) + [0] * len(denominator)
        rows = torch.cat([numerator, denominator]).double().numpy()
        found = LogisticRegression(class_weight="balanced", max_iter=1000).fit(rows, labels)
        self.register_buffer("weight", torch.as_tensor(found.coef_[0]).to(numerator))
        self.register_buffer("bias", torch.as_tensor(found.intercept_[0]).to(numerator))

    def forward(self, x: Tensor) -> Tensor:
        """The log-ratio ``(B,)`` at ``x`` ``(B, D)``."""
        return x @ self.weight + self.bias


class RatioEnergy(nn.Module):
    """Minus a log-ratio: a simple one, corrected by a network f that starts at 0.

    Args:
        net: f: a network ``(B, D) -> (B,)``.
        start: The simple log-ratio; ``None`` for 0.
    """

    def __init__(self, net: MLP, start: nn.Module | None = None) -> None:
        super().__init__()
        nn.init.zeros_(net.net[-1].weight)  # type: ignore[arg-type]
        self.net, self.start = net, start

    def forward(self, x: Tensor) -> Tensor:
        """Minus the log-ratio ``(B,)`` at ``x`` ``(B, D)``."""
        f: Tensor = self.net(x)
        return f if self.start is None else f - self.start(x)


@dataclass(frozen=True, eq=False)
class BridgeModel:
    """A fitted log-ratio.

    Attributes:
        units: From the table's units to the model's.
        energies: Minus the log-ratio of each step, frozen, float64.
    """

    units: Standardize
    energies: tuple[nn.Module, ...]

    def log_ratio(self, x: Tensor) -> Tensor:
        """The log-ratio ``(N,)`` of rows ``(N, D)`` in model units, float64."""
        with torch.no_grad():
            return -torch.stack([energy(x) for energy in self.energies]).sum(0)


def fit_bridges(
    numerator: Tensor, denominator: Tensor, budget: Budget, bridges: int, generator: torch.Generator
) -> BridgeModel:
    """Fit the log-ratio of two sets of rows.

    Args:
        numerator: Rows ``(N₁, D)``, float64.
        denominator: Rows ``(N₀, D)``, float64.
        budget: Size of each network, and settings of training.
        bridges: Number of steps; 0 for 1, or 4 if the sets can be told apart almost perfectly.
        generator: Source of randomness.
    """
    units = Standardize.fit(torch.cat([numerator, denominator]))
    one, zero = (TableRows.of(rows, generator, units=units) for rows in (numerator, denominator))
    model = BridgeModel(units, _steps(one, zero, budget, bridges or 1, generator))
    if bridges == 0 and _order(model, one.held_out, zero.held_out) > SEPARATE:
        model = BridgeModel(units, _steps(one, zero, budget, MANY_BRIDGES, generator))
    return model


def _steps(
    one: TableRows, zero: TableRows, budget: Budget, bridges: int, generator: torch.Generator
) -> tuple[nn.Module, ...]:
    shares = [k / bridges for k in range(bridges + 1)]
    return tuple(_step(one, zero, budget, low, high, generator) for low, high in pairwise(shares))


def _step(
    one: TableRows, zero: TableRows, budget: Budget, low: float, high: float, generator: torch.Generator
) -> nn.Module:
    """Minus the log-ratio of the waymarks ``high`` and ``low``.

    It starts at 0, at a logistic regression or at the log-ratio of two normal distributions: the best one on held-out
    rows.
    """
    x = one.train.x
    with drawing_from(generator):
        net = MLP((x.shape[1],), budget.hidden, base=False)
    train, noise = (Waymark(zero.train, one.train, share) for share in (high, low))
    held_out = Waymark(zero.held_out, one.held_out, high).draw(MEASURED_ROWS, generator)
    linear = LinearLogRatio(train.sample(len(x), generator), noise.sample(len(zero.train.x), generator))
    normal = NormalLogRatio(train.gaussian().to(x), noise.gaussian().to(x))
    starts = [RatioEnergy(net, start) for start in (None, linear, normal)]
    losses = []
    for energy in starts:
        test = NCE(Waymark(zero.held_out, one.held_out, low), learn_log_z=False).build(energy, x, generator=generator)
        losses.append(loss_on(energy, test, held_out, generator.initial_seed()))
    energy, loss = min(zip(starts, losses, strict=True), key=lambda pair: float(pair[1]()))
    objective = NCE(noise, learn_log_z=False).build(energy, x, generator=generator)
    fit_in_memory(energy, objective, train, loss, budget.settings, generator)
    return freeze(energy).double()


def _order(model: BridgeModel, one: Rows, zero: Rows) -> float:
    """Probability that a held-out row of the numerator has a greater ratio than one of the denominator."""
    return float(auc(*(-model.log_ratio(rows.x.double()) for rows in (one, zero))))
