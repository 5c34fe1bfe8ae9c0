"""The model behind the estimators of densities: a tilted energy of standardized rows."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from adance.data.transforms import Standardize
from adance.energies.frozen import freeze
from adance.energies.mlp import MLP
from adance.energies.tilted import Tilted
from adance.objectives.nce import NCE
from adance.objectives.objective import Objective
from adance.randomness import drawing_from
from adance.sklearn.base import fit_base
from adance.sklearn.budget import Budget
from adance.sklearn.normalization import BOUND
from adance.sklearn.rows import TableRows
from adance.training.in_memory import FitHistory, fit_in_memory, loss_on

PROPOSALS = 50
"""Proposals of each chain that draws a sample."""

CHUNK = 4096
"""Rows that are evaluated at a time."""


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted density of rows.

    Attributes:
        units: From the table's units to the model's.
        energy: The energy in model units, frozen, float64.
        log_z: Log Z of the energy, as learned.
        history: How the fit went.
    """

    units: Standardize
    energy: Tilted
    log_z: float
    history: FitHistory

    @torch.no_grad()
    def log_density(self, x: Tensor, lowest: float = -math.inf) -> Tensor:
        """Log-densities ``(N,)`` in the table's units of rows ``(N, D)`` in model units, float64.

        Args:
            x: The rows.
            lowest: Lower limit at which values of f are clamped.
        """
        net, base = self.energy.net, self.energy.fitted_base
        energies = torch.cat([net(part).clamp_min(lowest) - base.log_prob(part) for part in torch.split(x, CHUNK)])
        return self.units.log_det - self.log_z - energies

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Rows ``(n, D)`` in model units: ends of Metropolis chains whose proposals are samples of the base.

        A proposal y replaces x with probability ``min(1, exp(f(x) − f(y)))``, so the base is never evaluated.
        """
        x = self.energy.fitted_base.sample((PROPOSALS + 1) * n, generator)
        f = torch.cat([self.energy.net(part) for part in torch.split(x, CHUNK)]).view(-1, n)
        chances = torch.rand(f.shape, generator=generator, dtype=f.dtype).log()
        rows = torch.arange(n)
        at = torch.zeros_like(rows)
        for i in range(1, PROPOSALS + 1):
            at = torch.where(chances[i] < f[at, rows] - f[i], i, at)
        return x.view(-1, n, x.shape[1])[at, rows]


def fit_model(
    rows: TableRows,
    budget: Budget,
    noise: str,
    generator: torch.Generator,
    make_net: Callable[[int], nn.Module] | None = None,
    adapt: Callable[[Objective], Objective] = lambda objective: objective,
    start: TableModel | None = None,
    bound: float | None = BOUND,
) -> TableModel:
    """Fit a tilted energy to rows by NCE, its base being the noise.

    Args:
        rows: The rows.
        budget: Size of the network, and settings of training.
        noise: The base: name of a distribution that is fitted to the rows, ``auto`` or ``stack``, as in ``fit_base``.
        generator: Source of randomness.
        make_net: Makes the network for a number of columns; by default an MLP.
        adapt: Makes the objective that is minimized from the NCE objective.
        start: A model to continue from, with its base.
        bound: The bound of the network, as in :class:`~adance.energies.Tilted`; ``None`` for no bound.

    Raises:
        InputError: ``noise`` is unknown.
    """
    energy = _new_energy(rows, budget, noise, generator, make_net, bound) if start is None else _trainable(start.energy)
    assert energy.base is not None
    nce = NCE(energy.base, normalize=False).build(energy, rows.train.x, generator=generator)
    nce.start(energy, rows.train.x, generator)
    objective = adapt(nce)
    held_out_loss = loss_on(energy, objective, rows.held_out, seed=generator.initial_seed())
    history = fit_in_memory(energy, objective, rows.train, held_out_loss, budget.settings, generator)
    log_z, frozen = nce.log_normalizer(), freeze(energy).double()
    assert log_z is not None
    assert isinstance(frozen, Tilted)
    return TableModel(rows.units, frozen, float(log_z), history)


def _new_energy(
    rows: TableRows,
    budget: Budget,
    noise: str,
    generator: torch.Generator,
    make_net: Callable[[int], nn.Module] | None,
    bound: float | None,
) -> Tilted:
    columns = rows.train.x.shape[1]
    base = fit_base(rows, noise, generator)
    with drawing_from(generator):
        net = MLP((columns,), budget.hidden, base=False) if make_net is None else make_net(columns)
    return Tilted((columns,), net, base, bound)


def _trainable(frozen: Tilted) -> Tilted:
    energy = copy.deepcopy(frozen).float()
    energy.net.requires_grad_()
    return energy
