"""A density estimator."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import nn

from adance.energies.mlp import MLP
from adance.evaluation.log_z import Bracket
from adance.samplers.resampling import log_mean_exp
from adance.sklearn.budget import Budget
from adance.sklearn.inputs import generator_of, rows_in_units, training_rows
from adance.sklearn.model import fit_model
from adance.sklearn.normalization import bracket_tilt, sample_log_weights
from adance.sklearn.rows import TableRows
from adance.sklearn.waves import Waves

QUICK_DRAWS = 20_000
"""Number of samples of the base from which log Z is estimated at the end of a fit."""


class EnergyDensity(DensityMixin, BaseEstimator):
    """Density of a table's rows: a simple distribution corrected by a network, ``p(x) = p_base(x) exp(−f(x))/Z``.

    The network f is never below −5, so Z is finite, and importance sampling from the base estimates it.

    Columns are standardized. Each gets Gaussian noise of its resolution in training, so that rounded and discrete
    columns have a density too; the estimate is of the data with this noise. A part of the rows is held out, and the fit
    ends when their loss no longer improves, so the estimate is no worse on them than the base.

    Args:
        noise: The base, which is also the noise that rows are distinguished from: ``gaussian``, ``mixture``,
            ``student``, ``kde``, ``cover``, ``flow``, ``stack`` or ``auto``. ``stack`` combines mixtures of 1, 3, 10
            and 30 normal distributions, ``student`` and ``kde``, with the weights that are best on held-out rows.
            ``auto`` is ``stack``. For more than 64 columns both are ``student`` or ``kde``, whichever is better on
            held-out rows.
        hidden: Widths of the network's hidden layers; by default (32, 32) up to 300 rows, else (128, 128).
        max_steps: Most optimizer steps; by default 80 up to 300 rows, else twice as many as rows, at most 4,000.
        warm_start: Continue the previous fit, in its units and with its base.
        random_state: Seed, or a ``numpy.random.RandomState``.

    Attributes:
        n_features_in_: Number of columns.
        feature_names_in_: Their names, if the table has names.
        n_iter_: Optimizer steps done.
    """

    def __init__(
        self,
        *,
        noise: str = "auto",
        hidden: Sequence[int] | None = None,
        max_steps: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.noise = noise
        self.hidden = hidden
        self.max_steps = max_steps
        self.warm_start = warm_start
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "EnergyDensity":
        """Fit the density to rows ``X`` ``(N, D)``; ``y`` is not used."""
        start = getattr(self, "model_", None) if self.warm_start else None
        x, generator = training_rows(self, X), generator_of(self.random_state)
        rows = TableRows.of(x, generator, units=None if start is None else start.units)
        budget = Budget.of(len(x), self.hidden, self.max_steps)
        net = partial(_network, hidden=budget.hidden)
        noise = "stack" if self.noise == "auto" else self.noise
        model = fit_model(rows, budget, noise, generator, net, start=start)
        log_z = log_mean_exp(sample_log_weights(model.energy, QUICK_DRAWS, generator)).value
        self.model_ = replace(model, log_z=log_z)
        self.n_iter_ = self.model_.history.steps
        self._seed = generator.initial_seed()
        self._bracket: Bracket | None = None
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log-densities ``(N,)`` of rows ``X`` ``(N, D)``, in nats and in the units of the table."""
        check_is_fitted(self)
        return self.model_.log_density(rows_in_units(self, X, self.model_.units)).numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of rows ``X`` ``(N, D)``; ``y`` is not used."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[np.float64]:
        """Rows ``(n_samples, D)`` drawn from the density.

        They are the ends of Metropolis chains whose proposals are samples of the base.

        Args:
            n_samples: Number of rows.
            random_state: Seed, or a ``numpy.random.RandomState``.
        """
        check_is_fitted(self)
        generator = generator_of(random_state)
        return self.model_.units.to_data(self.model_.sample(n_samples, generator)).numpy()

    @property
    def log_z_bracket_(self) -> Bracket:
        """Bounds on the true log Z of the energy, minus the log Z that :meth:`score_samples` uses.

        This difference is 0 if the density is exactly normalized. With a probability of 99 %,
        ``score(X) − log_z_bracket_.upper`` is a lower bound on the mean log-density of the normalized model. Importance
        sampling from the base computes the bracket when it is first read, with a warning if it does not close.
        """
        check_is_fitted(self)
        if self._bracket is None:
            generator = torch.Generator().manual_seed(self._seed)
            self._bracket = bracket_tilt(self.model_.energy, self.model_.log_z, generator)
            if not self._bracket.closed:
                warnings.warn(f"log Z is {self._bracket.verdict}", ConvergenceWarning, stacklevel=2)
        return self._bracket


def _network(columns: int, hidden: tuple[int, ...]) -> nn.Module:
    return nn.Sequential(Waves(), MLP((3 * columns,), hidden, base=False))
