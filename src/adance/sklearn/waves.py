"""The features of a row that the network of a density sees."""

import torch
from torch import Tensor, nn

FREQUENCY = 3.0
"""Radians per standard deviation."""


class Waves(nn.Module):
    """Concatenates the columns x of rows, ``sin 3x`` and ``cos 3x``.

    A smooth network is slow to learn narrow details, such as peaks at frequent values, from x alone (Gorishniy et al.
    2022).
    """

    def forward(self, x: Tensor) -> Tensor:
        """Features ``(B, 3·D)`` of rows ``(B, D)``."""
        return torch.cat([x, torch.sin(FREQUENCY * x), torch.cos(FREQUENCY * x)], 1)
