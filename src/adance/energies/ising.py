"""The Ising model (thesis 2.2.2), on any graph or on a lattice."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from adance.configurable import Configurable
from adance.energies.binary import UnitKind
from adance.energies.pairwise import Pairwise
from adance.errors import InputError


class Ising(Configurable, Pairwise):
    """``E(x) = −(½ xᵀWx + bᵀx)``; W has a zero diagonal and need not be symmetric.

    On a lattice with coupling J and field B that is ``−J Σ_⟨ij⟩ xᵢxⱼ − B Σᵢ xᵢ``, over every bond once.

    Args:
        event_shape: Shape of one event; on a lattice, its axes.
        graph: ``full``: every pair; ``grid``: neighbors along each axis; ``torus``: the same with the ends joined.
        coupling: J, the initial value of every coupling.
        field: B, the initial value of every bias.
        units: ``spin`` (±1) or ``bit`` (0/1).

    Raises:
        InputError: ``graph`` or ``units`` is unknown, or ``event_shape`` contains a 0.
    """

    def __init__(
        self,
        event_shape: Sequence[int],
        graph: Literal["full", "grid", "torus"] = "full",
        coupling: float = 0.0,
        field: float = 0.0,
        units: UnitKind = "spin",
    ) -> None:
        if graph not in ("full", "grid", "torus"):
            raise InputError(f"unknown graph {graph!r}: use full, grid or torus")
        bonds = None if graph == "full" else lattice(event_shape, periodic=graph == "torus")
        super().__init__(event_shape, units, bonds)
        with torch.no_grad():
            self.weight.copy_(coupling * (self.graph if bonds is None else bonds))
            self.bias.fill_(field)

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None = None, units: UnitKind = "spin") -> "Ising":
        """The model with the couplings W ``(D, D)`` (their diagonal is dropped) and biases b ``(D,)``, by default 0.

        Raises:
            InputError: The shapes of ``weight`` and ``bias`` do not fit.
        """
        if weight.ndim != 2 or weight.shape[0] != weight.shape[1] or (bias is not None and len(bias) != len(weight)):
            shapes = f"{tuple(weight.shape)} and {None if bias is None else tuple(bias.shape)}"
            raise InputError(f"an Ising model needs couplings (D, D) and biases (D,), got {shapes}")
        made = cls((len(weight),), units=units).to(weight)
        with torch.no_grad():
            made.weight.copy_(weight).fill_diagonal_(0)
            if bias is not None:
                made.bias.copy_(bias)
        return made


def lattice(shape: Sequence[int], periodic: bool = True) -> Tensor:
    """Number of bonds between each pair of sites ``(D, D)`` of a lattice of any number of axes, D its number of sites.

    On a periodic axis of length 2 two bonds join the same two sites; an axis of length 1 has none.
    """
    sites = torch.arange(int(torch.tensor(tuple(shape)).prod())).view(*shape)
    bonds = torch.zeros(sites.numel(), sites.numel())
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        last = length if periodic else length - 1
        here = sites.narrow(axis, 0, last).flatten()
        there = sites.roll(-1, axis).narrow(axis, 0, last).flatten()
        ones = torch.ones(len(here))
        bonds.index_put_((here, there), ones, accumulate=True).index_put_((there, here), ones, accumulate=True)
    return bonds
