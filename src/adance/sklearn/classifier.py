"""A classifier by energies of each class."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from adance.energies.mlp import MLP
from adance.energies.tilted import Tilted
from adance.objectives.objective import LossOutput, Objective
from adance.sklearn.budget import Budget
from adance.sklearn.inputs import generator_of, labeled_training_rows, rows_in_units
from adance.sklearn.model import fit_model
from adance.sklearn.rows import TableRows


class ClassNet(nn.Module):
    """A network with one output h_c for each class; as an energy of x alone it is ``−log Σ_c exp(h_c)``.

    Args:
        columns: Number of columns D.
        classes: Number of classes C.
        hidden: Widths of the hidden layers.
    """

    def __init__(self, columns: int, classes: int, hidden: Sequence[int]) -> None:
        super().__init__()
        *layers, _ = MLP((columns,), hidden, base=False).net
        self.layers = nn.Sequential(*layers, nn.Linear((columns, *hidden)[-1], classes))

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, D)``."""
        return -self.layers(x).logsumexp(1)  # type: ignore[no-any-return]


class JointNCE(Objective):
    """NCE of the rows plus the cross-entropy of their classes.

    Both together are the cross-entropy of C + 1 classes, one of which is the noise. So the energies of all classes are
    on one scale: ``p(x, c) = p_base(x) exp(h_c(x))/Z``.

    Args:
        nce: The objective of the rows alone, not divided by its curvature.
    """

    def __init__(self, nce: Objective) -> None:
        super().__init__()
        self.nce = nce

    def loss(
        self, energy: nn.Module, x: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> LossOutput:
        """The loss of rows ``x`` ``(B, D)`` of the classes ``condition`` ``(B,)``."""
        out = self.nce.loss(energy, x, generator)
        assert isinstance(energy, Tilted)
        assert isinstance(energy.net, ClassNet)
        assert condition is not None
        return replace(out, value=out.value + cross_entropy(energy.net.layers(x), condition))


class EnergyClassifier(ClassifierMixin, BaseEstimator):
    """Classes of the rows of a table, and how likely rows are at all.

    It learns the joint density ``p(x, c)`` of rows and classes, in which every class has its own energy: the classes'
    probabilities at a row, and its log-density, by which rows of no class are found. Standardization, noise and early
    stopping are those of :class:`EnergyDensity`.

    Args:
        noise: The base of the density, as in :class:`EnergyOutlierDetector`.
        hidden: Widths of the network's hidden layers; by default (32, 32) up to 300 rows, else (128, 128).
        max_steps: Most optimizer steps; by default 80 up to 300 rows, else twice as many as rows, at most 4,000.
        random_state: Seed, or a ``numpy.random.RandomState``.

    Attributes:
        classes_: The labels, sorted.
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
        random_state: Any = None,
    ) -> None:
        self.noise = noise
        self.hidden = hidden
        self.max_steps = max_steps
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "EnergyClassifier":
        """Fit to rows ``X`` ``(N, D)`` and their labels ``y`` ``(N,)``."""
        x, y = labeled_training_rows(self, X, y)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        generator, budget = generator_of(self.random_state), Budget.of(len(x), self.hidden, self.max_steps)
        rows = TableRows.of(x, generator, torch.as_tensor(labels))
        net = lambda columns: ClassNet(columns, len(self.classes_), budget.hidden)  # noqa: E731
        self.model_ = fit_model(rows, budget, self.noise, generator, net, JointNCE, bound=None)
        with torch.no_grad():
            self._lowest = float(self.model_.energy.net(rows.train.x.double()).min())
        self.n_iter_ = self.model_.history.steps
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities ``(N, C)`` of the classes at rows ``X`` ``(N, D)``, in the order of ``classes_``."""
        check_is_fitted(self)
        x, net = rows_in_units(self, X, self.model_.units), self.model_.energy.net
        assert isinstance(net, ClassNet)
        with torch.no_grad():
            return net.layers(x).softmax(1).numpy()  # type: ignore[no-any-return]

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class ``(N,)`` of each row of ``X`` ``(N, D)``."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]  # type: ignore[no-any-return]

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log-densities ``(N,)`` of rows ``X`` ``(N, D)``, all classes together: low for rows of no class.

        The network's value is clamped from below at its minimum over the training rows. Far from these rows the density
        therefore falls at least as fast as the base's, even where the network decreases linearly. The result is not
        renormalized.
        """
        check_is_fitted(self)
        return self.model_.log_density(rows_in_units(self, X, self.model_.units), self._lowest).numpy()
