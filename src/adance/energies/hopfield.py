"""The Hopfield network (Hopfield 1982; thesis 2.2.2): an associative memory."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

from adance.configurable import Configurable
from adance.energies.pairwise import Pairwise
from adance.errors import InputError


class Hopfield(Configurable, Pairwise):
    """``E(x) = −(½ xᵀWx + bᵀx)`` of spins ±1, W symmetric with a zero diagonal; b is 0 unless set.

    Args:
        event_shape: Shape of one pattern.

    Raises:
        InputError: ``event_shape`` contains a 0.
    """

    def __init__(self, event_shape: Sequence[int]) -> None:
        super().__init__(event_shape, "spin")

    @torch.no_grad()
    def store(self, patterns: Tensor, rule: Literal["hebbian", "projection"] = "hebbian") -> "Hopfield":
        """Add patterns ``(P, *event)`` of ±1 to the memory; returns the network.

        ``hebbian``: ``W = ΞᵀΞ/D`` with Ξ the patterns as rows. It stores about 0.14·D unrelated patterns.
        ``projection`` (Personnaz, Guyon and Dreyfus 1986): ``W = Ξ⁺Ξ``, which stores any linearly independent patterns,
        including related ones; it replaces stored patterns. The diagonal is dropped.

        Raises:
            InputError: ``patterns`` are empty or have values other than −1 and 1, or ``rule`` is unknown.
        """
        xi = self.flatten(patterns).to(self.weight)
        if len(xi) == 0 or not (xi.abs() == 1).all():
            raise InputError("patterns must be at least one pattern of −1 and 1")
        if rule == "hebbian":
            self.weight.add_(xi.T @ xi / xi.shape[1])
        elif rule == "projection":
            self.weight.copy_(torch.linalg.pinv(xi.double()) @ xi.double())
        else:
            raise InputError(f"unknown rule {rule!r}: use hebbian or projection")
        self.weight.fill_diagonal_(0)
        return self

    @torch.no_grad()
    def recall(
        self,
        x: Tensor,
        known: Tensor | None = None,
        max_sweeps: int = 100,
        generator: torch.Generator | None = None,
        callback: Callable[[int, Tensor], None] | None = None,
    ) -> Tensor:
        """Fixed points ``(B, *event)`` that asynchronous updates ``xᵢ ← sign(Σⱼ wᵢⱼxⱼ + bᵢ)`` lead to from ``x``.

        No update raises the energy. A unit whose field is 0 stays as it is, or becomes 1 if it was 0.

        Args:
            x: Starts ``(B, *event)``: −1, 1, or 0 for an unknown unit; not modified.
            known: Boolean mask that broadcasts against ``x``: units to hold.
            max_sweeps: Maximum number of sweeps over all units; recall ends when a sweep changes nothing.
            generator: Source of a random order for each sweep; by default sweeps go in the order of the units.
            callback: Called as ``callback(sweep, x)`` after each sweep, counted from 1.
        """
        flat = self.flatten(x).to(self.weight.device, torch.float64, copy=True)
        symmetric, bias = self.symmetric().double(), self.bias.double()
        tie = 1e-12 * symmetric.abs().sum(0).max()
        held = torch.zeros_like(x, dtype=torch.bool) if known is None else known.expand_as(x)
        free, order = ~held.flatten(1), torch.arange(len(bias))
        for sweep in range(1, max_sweeps + 1):
            before = flat.clone()
            if generator is not None:
                order = torch.randperm(len(bias), generator=generator, device=generator.device)
            for i in order.tolist():
                field = torch.addmv(bias[i], flat, symmetric[i])
                pulled = free[:, i] & ((field.abs() > tie) | (flat[:, i] == 0))
                flat[:, i] = torch.where(pulled, torch.where(field < -tie, -1.0, 1.0), flat[:, i])
            if callback is not None:
                callback(sweep, flat.view(x.shape).to(x.dtype))
            if torch.equal(flat, before):
                break
        return flat.view(x.shape).to(x.dtype)

    def complete(self, x: Tensor, known: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Patterns ``(B, *event)`` with missing units filled in: ``x`` is held where ``known``, and 0 elsewhere."""
        return self.recall(torch.where(known, x, 0.0), known, generator=generator)
