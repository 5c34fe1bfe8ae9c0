"""Several densities as one mixture."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from adance.energies.analytic import ExactDensity
from adance.errors import InputError


class Blend(ExactDensity):
    """The mixture of several densities with equal weights: it covers what any of them covers.

    Args:
        parts: Densities on the same events, each a module.

    Raises:
        InputError: There are no parts.
    """

    def __init__(self, parts: Sequence[ExactDensity]) -> None:
        if not parts:
            raise InputError("a blend needs at least one density")
        super().__init__(parts[0].origin)
        self.parts = nn.ModuleList(parts)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, *event)``."""
        every = torch.stack([part.sample(n, generator) for part in self._parts()])
        which = torch.randint(len(every), (n,), generator=generator, device=every.device)
        return every[which, torch.arange(n, device=every.device)]

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
        every = torch.stack([part.log_prob(x) for part in self._parts()])
        return every.logsumexp(0) - math.log(len(every))

    def _parts(self) -> list[ExactDensity]:
        return [part for part in self.parts if isinstance(part, ExactDensity)]
