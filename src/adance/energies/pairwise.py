"""Binary units that interact in pairs: the base class of Hopfield, Ising and Boltzmann models."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from adance.energies.binary import UnitKind, count_units, draw_units, flatten_units, low_value
from adance.errors import InputError


class Pairwise(nn.Module):
    """``E(x) = −(½ xᵀWx + bᵀx)`` of binary units, with a zero diagonal (thesis 2.2.2).

    W need not be symmetric; the energy depends on its symmetric part only. Given all others, a unit is 1 with log-odds
    ``Σⱼ(wᵢⱼ + wⱼᵢ)xⱼ + 2bᵢ`` for spins and ``½Σⱼ(wᵢⱼ + wⱼᵢ)xⱼ + bᵢ`` for bits.

    Args:
        event_shape: Shape of one event; W and b are indexed by the flattened event.
        units: ``spin`` (±1) or ``bit`` (0/1).
        graph: Couplings that exist ``(D, D)``, where non-zero; by default all. Others are held at 0.

    Raises:
        InputError: ``units`` is unknown, ``event_shape`` contains a 0, or ``graph`` is not ``(D, D)``.
    """

    graph: Tensor

    def __init__(self, event_shape: Sequence[int], units: UnitKind = "spin", graph: Tensor | None = None) -> None:
        super().__init__()
        self.event_shape = tuple(event_shape)
        self.low = low_value(units)
        n = count_units(self.event_shape)
        graph = torch.ones(n, n) if graph is None else (graph != 0).float()
        if graph.shape != (n, n):
            raise InputError(f"graph must have shape ({n}, {n}) for {n} units, got {tuple(graph.shape)}")
        self.register_buffer("graph", graph.fill_diagonal_(0))
        self.weight = nn.Parameter(torch.zeros(n, n))
        self.bias = nn.Parameter(torch.zeros(n))
        self._blocks = color(self.graph)

    @property
    def couplings(self) -> Tensor:
        """W ``(D, D)``, with 0 off the graph and on the diagonal."""
        return self.weight * self.graph

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)``."""
        flat = self.flatten(x)
        return -0.5 * ((flat @ self.couplings) * flat).sum(1) - flat @ self.bias

    def conditional_logits(self, x: Tensor, units: Tensor | None = None) -> Tensor:
        """Log-odds that a unit is 1 given all others: ``(B, m)`` for ``units`` ``(m,)``, else in the shape of ``x``."""
        logits = self._logits(self.flatten(x), self.symmetric(), slice(None) if units is None else units)
        return logits.view(x.shape) if units is None else logits

    def symmetric(self) -> Tensor:
        """``½(W + Wᵀ)`` ``(D, D)``."""
        return 0.5 * (self.couplings + self.couplings.T)

    def blocks(self) -> list[Tensor]:
        """Sets of units without couplings inside a set: one for each unit of a full graph, two for a chess board."""
        return [block.to(self.weight.device) for block in self._blocks]

    @torch.no_grad()
    def block_gibbs(self, x: Tensor, generator: torch.Generator | None = None, temperature: float = 1.0) -> Tensor:
        """``x`` ``(B, *event)`` after each block in turn was drawn given the others."""
        return self.sweep(x, self.blocks(), generator, temperature)

    def sweep(
        self, x: Tensor, blocks: Sequence[Tensor], generator: torch.Generator | None, temperature: float = 1.0
    ) -> Tensor:
        """``x`` ``(B, *event)`` after each of ``blocks`` in turn was drawn given the others."""
        flat, symmetric = self.flatten(x).clone(), self.symmetric()
        for block in blocks:
            flat[:, block] = draw_units(self._logits(flat, symmetric, block) / temperature, self.low, generator)
        return flat.view(x.shape)

    def flatten(self, x: Tensor) -> Tensor:
        """``x`` ``(B, *event)`` as ``(B, D)``.

        Raises:
            InputError: Events have another number of units.
        """
        return flatten_units(x, len(self.bias), type(self).__name__)

    def _logits(self, flat: Tensor, symmetric: Tensor, units: Tensor | slice) -> Tensor:
        return (1 - self.low) * (flat @ symmetric[:, units] + self.bias[units])


def color(graph: Tensor) -> list[Tensor]:
    """Sets of nodes of a graph ``(D, D)``, with no edge inside a set: each node joins the first set that fits."""
    joined = (graph + graph.T) != 0
    n = len(joined)
    if int(joined.sum()) == n * (n - 1):
        return list(torch.arange(n)[:, None])
    colors = [-1] * n
    for node in range(n):
        taken = {colors[other] for other in joined[node].nonzero().squeeze(1).tolist()}
        colors[node] = next(c for c in range(n) if c not in taken)
    of_node = torch.tensor(colors)
    return [(of_node == c).nonzero().squeeze(1) for c in range(max(colors) + 1)]
