"""What the network sees of the data: the place of each value in the distribution of the simulations."""

from dataclasses import dataclass

import torch
from torch import Tensor

from adance.sbi.checks import as_table

LEVELS = 512
"""Most quantiles of a column that are kept."""


@dataclass(frozen=True, eq=False)
class DataFeatures:
    """Normal scores of each column of x, ``Φ⁻¹(rank)``: a monotone function, linear between quantiles of simulations.

    Columns of simulators often have heavy tails; after standardization, everything but the tail is squeezed together.
    Equal values, as of counts, get the score of their middle rank. Outside the quantiles the score grows as a
    logarithm.

    Attributes:
        quantiles: Quantiles of each column ``(p, L)``, ascending.
        scores: Their normal scores ``(L,)``.
    """

    quantiles: Tensor
    scores: Tensor

    @classmethod
    def fit(cls, x: Tensor) -> "DataFeatures":
        """The features of simulations ``x`` ``(N, p)``, float64.

        Raises:
            InputError: A value is not finite.
        """
        as_table("x", x, x.shape[1])
        n = min(LEVELS, len(x))
        shares = (torch.arange(n, dtype=torch.float64) + 0.5) / n
        return cls(torch.quantile(x, shares, dim=0).T.contiguous(), torch.special.ndtri(shares))

    def __call__(self, x: Tensor) -> Tensor:
        """Features ``(N, p)`` of data ``(N, p)``, float32.

        Raises:
            InputError: The shape is another one, or a value is not finite.
        """
        as_table("x", x, len(self.quantiles))
        columns, last = x.double().T.contiguous(), self.quantiles.shape[1] - 1
        first, after = (torch.searchsorted(self.quantiles, columns, right=right) for right in (False, True))
        below, above = (first - 1).clamp(0, last), first.clamp(0, last)
        low, high = self.quantiles.gather(1, below), self.quantiles.gather(1, above)
        between = below + ((columns - low) / (high - low).clamp(min=1e-300)).clamp(0, 1)
        place = torch.where(after > first, (first + after - 1) / 2, between).clamp(0, last)
        floor = place.floor().long()
        scores = torch.lerp(self.scores[floor], self.scores[(floor + 1).clamp(max=last)], place - floor)
        return (scores + self._beyond(columns)).T.float()

    def _beyond(self, columns: Tensor) -> Tensor:
        """``± log(1 + distance/width)`` of values outside the quantiles, in units of the distance of two scores."""
        lowest, highest = self.quantiles[:, :1], self.quantiles[:, -1:]
        width = (highest - lowest) / (self.scores[-1] - self.scores[0])
        width = torch.where(width > 0, width, 1.0)
        above, below = ((columns - highest) / width).clamp(min=0), ((lowest - columns) / width).clamp(min=0)
        return above.log1p() - below.log1p()
