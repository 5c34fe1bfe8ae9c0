"""The energies of a batch in which most rows hardly count.

Once a contrast saturates, one noise sample of a hundred can hold all of the weight. The other weights are tiny, and
their products with a layer's weights are denormal numbers, which many processors multiply tens of times more slowly. So
weights that cannot matter are set to 0, and rows without weight need no backward pass.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd

from adance.distributed import mean_over_ranks
from adance.energies.conditional import given
from adance.energies.energy import evaluate

NEGLIGIBLE = 1e-8
"""A row's weight is set to 0 below this share of the largest."""

SMALLEST = 1e-20
"""A row's weight is set to 0 below this."""

SMALLEST_BUCKET = 8
"""Fewest rows of a backward pass; larger numbers of rows double."""

FEW = 0.5
"""Rows are chosen if on average at most this share of them has a weight."""

MEMORY = 0.9
"""Decay of the mean share of rows that have a weight."""


@dataclass(frozen=True)
class Evaluated:
    """Energies of a batch.

    Attributes:
        energies: The energies ``(N,)`` that the loss is computed from.
        connect: Gives a loss of these energies the gradient of the energy's parameters, if they have no graph of their
            own.
    """

    energies: Tensor
    connect: Callable[[Tensor], Tensor] | None = None


class LiveRows(nn.Module):
    """Evaluates energies, with a backward pass over only those rows whose weight in the gradient matters.

    That takes a second forward pass over these rows, so it is done only where it pays: on the CPU, for an energy with
    convolutions, and while few rows have a weight.
    """

    share: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("share", torch.ones(()))

    def evaluate(self, energy: nn.Module, x: Tensor, condition: Tensor | None = None, choose: bool = True) -> Evaluated:
        """Energies of ``x`` ``(N, *event)``; without ``choose`` all rows have a backward pass.

        A conditional energy takes ``condition`` ``(N, *condition)``.
        """
        whole = given(energy, condition)
        graph = torch.is_grad_enabled()
        if not (choose and graph and x.device.type == "cpu" and _convolves(energy)):
            energies = evaluate(whole, x)
            if energies.requires_grad:
                energies.register_hook(drop_negligible)  # type: ignore[no-untyped-call]
            return Evaluated(energies)
        few = bool(self.share <= FEW)
        with torch.set_grad_enabled(not few):
            energies = evaluate(whole, x)
        leaf = energies.detach().requires_grad_()

        def connect(loss: Tensor) -> Tensor:
            (weights,) = torch.autograd.grad(loss, leaf, retain_graph=True)
            weights = drop_negligible(weights)
            live = int(weights.count_nonzero())
            self.share.lerp_(mean_over_ranks(self.share.new_tensor(live / len(x))), 1 - MEMORY)
            rows = weights.abs().topk(bucket_size(live, len(x))).indices.sort().values if few else slice(None)
            part = given(energy, None if condition is None else condition[rows])
            product = (evaluate(part, x[rows]) if few else energies) @ weights[rows]
            return loss + (product - product.detach())

        return Evaluated(leaf, connect)


def drop_negligible(weights: Tensor) -> Tensor:
    """``weights`` ``(N,)``, with 0 for those that cannot matter."""
    size = weights.abs()
    return torch.where(size < (NEGLIGIBLE * size.amax()).clamp(min=SMALLEST), 0.0, weights)


def bucket_size(live: int, rows: int) -> int:
    """Rows of the backward pass for ``live`` of ``rows``: one of a few sizes, so that kernels are prepared once."""
    size = SMALLEST_BUCKET
    while size < live:
        size *= 2
    return min(size, rows)


def _convolves(energy: nn.Module) -> bool:
    """Whether the energy has convolutions, and no dropout, which would differ in the second pass."""
    layers = list(energy.modules())
    return any(isinstance(layer, _ConvNd) for layer in layers) and not any(
        isinstance(layer, _DropoutNd) and layer.training and layer.p > 0 for layer in layers
    )
