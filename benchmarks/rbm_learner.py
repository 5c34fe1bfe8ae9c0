"""Contrastive divergence (Hinton 2002) and its persistent form (Tieleman 2008) for restricted Boltzmann machines alone.

The library trains them with `adance.ContrastiveDivergence` and `adance.PersistentCD`. This code is for a comparison of
time with scikit-learn's: all is by formula and in place, for speed on small batches. A constant visible and a constant
hidden unit carry the biases, so that one matrix ``A = [[W, a], [bᵀ, ∞]]`` holds all parameters; the huge coupling of
the two keeps both at 1, and has no gradient.
"""

from typing import Literal

import torch
from torch import Tensor

from adance.energies.binary import draw_units
from adance.energies.rbm import RBM
from adance.errors import InputError

PINNED = 1e4
"""Coupling of the two constant units: far above any field of the others."""


@torch.no_grad()
def train_rbm(
    rbm: RBM,
    data: Tensor,
    *,
    epochs: int = 10,
    batch_size: int = 10,
    learning_rate: float = 0.1,
    method: Literal["pcd", "cd"] = "pcd",
    gibbs_steps: int = 1,
    average: float = 0.1,
    generator: torch.Generator | None = None,
) -> None:
    """Raise the likelihood of ``data`` by gradient steps, one a batch.

    The step adds ``learning_rate`` times the positive less the negative phase. The negative phase is over
    ``batch_size`` chains, moved by ``gibbs_steps`` sweeps of block Gibbs at each step: chains that persist from step to
    step (``pcd``), or that start from the batch (``cd``). Each epoch goes through the data in a new order; rows that do
    not fill the last batch are left out of it.

    Args:
        rbm: Trained in place.
        data: ``(N, *event)`` in the RBM's units.
        epochs: Times through the data.
        batch_size: Rows of a batch, and chains.
        learning_rate: Factor on the gradient.
        method: ``pcd`` or ``cd``.
        gibbs_steps: k.
        average: The result is the mean of the parameters over this last share of the epochs (Polyak and Juditsky 1992),
            which takes out the noise of the last steps; 0 for the parameters after the last step.
        generator: Source of randomness, on the device of the RBM.

    Raises:
        InputError: A number is out of range, or the data do not fit.
    """
    flat = rbm.flatten(data).to(rbm.weight)
    if not 1 <= batch_size <= len(flat) or epochs < 0 or gibbs_steps < 1 or not learning_rate > 0:
        raise InputError(
            f"an RBM trains with 1 ≤ batch_size ≤ {len(flat)} rows, epochs ≥ 0, gibbs_steps ≥ 1 and learning_rate > 0, "
            f"got {batch_size}, {epochs}, {gibbs_steps} and {learning_rate}"
        )
    if method not in ("pcd", "cd"):
        raise InputError(f"an RBM trains by the method pcd or cd, not {method!r}")
    if not 0 <= average <= 1:
        raise InputError(f"average is a share of the epochs, between 0 and 1, got {average}")
    if not ((flat == rbm.low) | (flat == 1)).all():
        raise InputError(f"an RBM of units {rbm.low:g} and 1 trains on data of these values")
    learner = _Learner(rbm, batch_size, learning_rate, method == "pcd", gibbs_steps, generator)
    for epoch in range(epochs):
        order = torch.randperm(len(flat), generator=generator, device=flat.device)
        learner.epoch(flat[order[: len(flat) // batch_size * batch_size]], epochs - epoch <= average * epochs)
    learner.write_back()


class _Learner:
    """The matrix A, the chains' hidden units and the buffers of one batch; views are made once, not every step."""

    def __init__(
        self, rbm: RBM, rows: int, rate: float, persistent: bool, k: int, generator: torch.Generator | None
    ) -> None:
        self.rbm, self.rows, self.rate, self.persistent, self.k = rbm, rows, rate, persistent, k
        self.generator, self.spin = generator, rbm.low == -1
        D, H = rbm.weight.shape
        self.matrix = rbm.weight.new_empty(D + 1, H + 1)
        self.matrix[:D, :H], self.matrix[:D, H] = rbm.weight, rbm.visible_bias
        self.matrix[D, :H], self.matrix[D, H] = rbm.hidden_bias, PINNED
        self.transposed = self.matrix.T
        self.sum, self.summed = torch.zeros_like(self.matrix), 0
        hidden = draw_units(rbm.hidden_bias.expand(rows, H) * (1 - rbm.low), rbm.low, generator)
        self.hidden = torch.cat([hidden, hidden.new_ones(rows, 1)], 1)
        self.means = self.matrix.new_empty(2 * rows, H + 1)
        self.chain_means = self.means[rows:]
        self.sign = torch.cat([hidden.new_ones(rows, 1), -hidden.new_ones(rows, 1)])

    def epoch(self, data: Tensor, averaged: bool) -> None:
        """One step for every ``rows`` of ``data`` ``(N, D)``; ``averaged``: its parameters count for the mean."""
        batches = data.view(-1, self.rows, data.shape[1])
        for part in torch.split(batches, max(1, 2**20 // (self.k * self.rows * sum(self.matrix.shape)))):
            # each batch above its chains, in one tensor with the constant unit
            both = part.new_ones(len(part), 2 * self.rows, data.shape[1] + 1)
            both[:, : self.rows, :-1] = part
            tops, bottoms = both[:, : self.rows].unbind(), both[:, self.rows :].unbind()
            visible, hidden = self._noise(len(part), 0), self._noise(len(part), 1)
            for i, (batch, turned) in enumerate(zip(both.unbind(), both.mT.unbind(), strict=True)):
                now = slice(i * self.k, (i + 1) * self.k)
                self._move(tops[i], bottoms[i], visible[now], hidden[now])
                self._mean(torch.mm(batch, self.matrix, out=self.means))
                if self.persistent:
                    self._draw(self.chain_means, hidden[now][-1], self.hidden)
                self.matrix.addmm_(turned, self.means.mul_(self.sign), alpha=self.rate / self.rows)
                if averaged:
                    self.sum.add_(self.matrix)
            self.summed += averaged * len(part)

    def write_back(self) -> None:
        """Put the parameters, or their mean, back into the RBM."""
        matrix = self.sum / self.summed if self.summed else self.matrix
        self.rbm.weight.copy_(matrix[:-1, :-1])
        self.rbm.visible_bias.copy_(matrix[:-1, -1])
        self.rbm.hidden_bias.copy_(matrix[-1, :-1])

    def _move(self, data: Tensor, chains: Tensor, visible: list[Tensor], hidden: list[Tensor]) -> None:
        """k sweeps, from the chains' hidden units or from those of the data, into ``chains`` ``(rows, D + 1)``."""
        if not self.persistent:
            self._draw(self._mean(data @ self.matrix), hidden[-1], self.hidden)
        for i, noise in enumerate(visible):
            if i > 0:
                self._draw(self._mean(chains @ self.matrix), hidden[i - 1], self.hidden)
            self._draw(self._mean(torch.mm(self.hidden, self.transposed, out=chains)), noise, chains)

    def _mean(self, field: Tensor) -> Tensor:
        return field.tanh_() if self.spin else field.sigmoid_()

    def _draw(self, means: Tensor, noise: Tensor, out: Tensor) -> None:
        torch.gt(means, noise, out=out)
        if self.spin:
            out.mul_(2).sub_(1)

    def _noise(self, steps: int, layer: int) -> list[Tensor]:
        """Uniform over the units' range, k times ``(rows, units + 1)`` for each of the steps."""
        shape = (steps * self.k, self.rows, self.matrix.shape[layer])
        u = torch.rand(shape, generator=self.generator, dtype=self.matrix.dtype, device=self.matrix.device)
        return list((u.mul_(2).sub_(1) if self.spin else u).unbind())
