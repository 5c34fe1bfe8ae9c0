"""Several densities as one mixture."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from adance.energies.analytic import ExactDensity
from adance.energies.mixtures import sample_components
from adance.errors import InputError


class Blend(ExactDensity):
    """The mixture of several densities: it covers what any of them covers.

    Args:
        parts: Densities on the same events, each a module.
        weights: Positive weights ``(K,)`` of the parts, which sum to 1; equal by default.

    Raises:
        InputError: ``parts`` is empty, or ``weights`` has a different length.
    """

    log_weights: Tensor | None

    def __init__(self, parts: Sequence[ExactDensity], weights: Tensor | None = None) -> None:
        if not parts:
            raise InputError("a blend needs at least one density")
        if weights is not None and len(weights) != len(parts):
            raise InputError(f"a blend of {len(parts)} densities needs {len(parts)} weights, got {len(weights)}")
        super().__init__(parts[0].origin)
        self.parts = nn.ModuleList(parts)
        self.register_buffer("log_weights", None if weights is None else weights.log())

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, *event)``."""
        if self.log_weights is None:
            every = torch.stack([part.sample(n, generator) for part in self._parts()])
            which = torch.randint(len(every), (n,), generator=generator, device=every.device)
            return every[which, torch.arange(n, device=every.device)]
        which = sample_components(self.log_weights, False, n, generator)
        x = self.origin.expand(n, *self.origin.shape).clone()
        for k, part in enumerate(self._parts()):
            mine = which == k
            x[mine] = part.sample(int(mine.sum()), generator)
        return x

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
        every = torch.stack([part.log_prob(x) for part in self._parts()])
        if self.log_weights is None:
            return every.logsumexp(0) - math.log(len(every))
        return (every + self.log_weights[:, None].to(x)).logsumexp(0)

    def _parts(self) -> list[ExactDensity]:
        return [part for part in self.parts if isinstance(part, ExactDensity)]
