"""Shared by score-matching objectives: the score with its graph, its derivatives along directions, the output."""

import torch
from torch import Tensor, nn

from adance.distributed import mean_over_ranks
from adance.energies.energy import evaluate
from adance.objectives.objective import LossOutput


def energies_and_score(energy: nn.Module, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A leaf at ``x`` ``(B, *event)``, the energies ``(B,)`` there and the scores ``−∇E`` ``(B, *event)``.

    Energies and scores have graphs, to the leaf and to the weights.
    """
    leaf = x.detach().requires_grad_()
    energies = evaluate(energy, leaf)
    (gradient,) = torch.autograd.grad(energies.sum(), leaf, create_graph=True)
    return leaf, energies, -gradient


def second_derivatives(score: Tensor, leaf: Tensor, directions: Tensor, chunk: int | None = None) -> Tensor:
    """``vᵀ∇²log p v`` ``(M, B)`` for directions v ``(M, B or 1, *event)``, by Hessian-vector products.

    Args:
        score: ``(B, *event)``, with its graph to ``leaf``.
        leaf: Where the score was computed ``(B, *event)``.
        directions: M directions for each row, or for all rows.
        chunk: Number of directions computed at once, which bounds the memory.
    """
    if not score.requires_grad:
        return score.new_zeros(len(directions), len(score))

    def along(v: Tensor) -> Tensor:
        v = v.expand_as(score)
        (product,) = torch.autograd.grad(score, leaf, v, create_graph=True, materialize_grads=True)
        return (product * v).flatten(1).sum(1)

    return torch.func.vmap(along, chunk_size=chunk)(directions)


def score_output(value: Tensor, energies: Tensor, squares: Tensor) -> LossOutput:
    """The output of a score-matching loss ``value``.

    Args:
        value: The loss.
        energies: ``(B,)``.
        squares: Squared norms of the scores, or an estimate of them, ``(B,)``.
    """
    # A weight that shifts all energies equally does not affect the score: it gets a gradient of 0 instead of none, as
    # data-parallel training needs.
    value = value + 0 * energies.sum()
    found, energies, squares = value.detach(), energies.detach(), squares.detach()
    return LossOutput(
        value,
        energies,
        energies.new_empty(0),
        lambda: {
            "loss": mean_over_ranks(found),
            "energy_data": mean_over_ranks(energies.mean()),
            "score_norm": mean_over_ranks(squares.mean()).sqrt(),
        },
    )
