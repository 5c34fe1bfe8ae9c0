"""Bregman contrasts with your own Ψ."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import grad

from adance.contrasts.clipped import ClippedBregman
from adance.errors import InputError
from adance.registry import find_function

GRID = 401


class Custom(ClippedBregman):
    """Bregman ratio matching with any convex Ψ(u), whose derivatives are computed by automatic differentiation.

    Ψ is evaluated at ``u = e^r`` in the dtype of r: write Ψ so that its derivative does not cancel at large u.

    Args:
        psi: Ψ as a function of positive tensors, elementwise and written with torch operations; or the path of such a
            function (``package.module.function``) in a trusted module, for config files.
        noises: Noise samples per datum.
        max_ratio: As in :class:`ClippedBregman`, on both sides.

    Raises:
        InputError: ``psi`` is not elementwise, not strictly convex on a grid of 401 ratios from 1/max_ratio to
            max_ratio, or its module is not trusted.
    """

    def __init__(self, psi: Callable[[Tensor], Tensor] | str, noises: int = 1, max_ratio: float = 1e4) -> None:
        super().__init__(noises, max_ratio)
        self.psi = find_function(psi) if isinstance(psi, str) else psi
        self.init_args["psi"] = _import_path(psi)
        bound = math.log10(max_ratio)
        ratios = torch.logspace(-bound, bound, GRID, dtype=torch.float64)
        if self.psi(ratios).shape != ratios.shape:
            raise InputError("psi must be elementwise, but its output has a different shape from its input")
        second = self._second(ratios)
        bad = ~(second.isfinite() & (second > 0))
        if bad.any():
            at = float(ratios[bad][0])
            raise InputError(
                f"psi is not strictly convex: its second derivative at u = {at:.3g} is {second[bad][0]:.3g}"
            )
        self.curvature = float(self._second(torch.ones(1, dtype=torch.float64)))

    def exact_s0(self, r: Tensor) -> Tensor:
        """uΨ'(u) − Ψ(u)."""
        u = r.exp()
        return u * self._first(u) - self.psi(u)

    def exact_s1(self, r: Tensor) -> Tensor:
        """Ψ'(u)."""
        return self._first(r.exp())

    def weight(self, r: Tensor) -> Tensor:
        """uΨ''(u)."""
        u = r.exp()
        return u * self._second(u)

    def _first(self, u: Tensor) -> Tensor:
        return grad(lambda v: self.psi(v).sum())(u)  # type: ignore[no-any-return]

    def _second(self, u: Tensor) -> Tensor:
        return grad(lambda v: self._first(v).sum())(u)  # type: ignore[no-any-return]


def _import_path(psi: Callable[[Tensor], Tensor] | str) -> object:
    """The path of a function that can be imported; otherwise the function, which a config file cannot hold."""
    name = getattr(psi, "__qualname__", "<locals>")
    return psi if isinstance(psi, str) or "<" in name else f"{psi.__module__}.{name}"
