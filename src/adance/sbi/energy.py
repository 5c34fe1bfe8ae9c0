"""The energy of a posterior: a standard normal prior, tilted by a network that compares θ and x."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from adance.energies.mlp import GAINS
from adance.errors import InputError

SMALL = 0.1
"""Initial standard deviation of a square's argument, so that training begins close to the prior."""

SPREAD = math.sqrt(3)
"""Half the width of a uniform distribution with standard deviation 1."""


class RatioNet(nn.Module):
    """``f(θ, x) = a(θ, x) + ½ Σₖ bₖ(θ, x)²``, in which a and b are the outputs of one network.

    The log-likelihood of many simulators is close to a sum of squares, in which only the bₖ, often almost linear, must
    be learned. Each bₖ also has a linear term in θ and x, past the network.

    Args:
        parameters: Number of features of θ.
        data: Number of features of x.
        hidden: Widths of the hidden layers.
        squares: Number of squares.
    """

    def __init__(self, parameters: int, data: int, hidden: Sequence[int] = (128, 128, 128), squares: int = 16) -> None:
        super().__init__()
        if not (hidden and all(width >= 1 for width in hidden)):
            raise InputError(f"hidden must be widths, each at least 1, got {list(hidden)}")
        inputs = parameters + data
        layers: list[nn.Module] = []
        for narrow, wide in pairwise([inputs, *hidden]):
            layer = nn.Linear(narrow, wide)
            nn.init.normal_(layer.weight, std=GAINS["silu"] / math.sqrt(narrow))
            nn.init.uniform_(layer.bias, -1, 1)
            layers += [layer, nn.SiLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(hidden[-1], 1 + squares)
        self.linear = nn.Linear(inputs, squares, bias=False)
        nn.init.normal_(self.head.weight, std=SMALL / math.sqrt(hidden[-1]))
        nn.init.zeros_(self.head.weight[0])
        nn.init.zeros_(self.head.bias)
        nn.init.normal_(self.linear.weight, std=SMALL / math.sqrt(inputs))

    def forward(self, theta: Tensor, x: Tensor) -> Tensor:
        """f ``(N,)`` of features of θ ``(N, d)`` and of x ``(N, p)``."""
        inputs = torch.cat([theta, x], 1)
        out = self.head(self.body(inputs))
        squares = (out[:, 1:] + self.linear(inputs)).square().sum(1)
        return out[:, 0] + 0.5 * squares  # type: ignore[no-any-return]


class PosteriorTilt(nn.Module):
    """``E(u | x) = ½‖u‖² + f(θ(u), x)``: a conditional energy of the normal coordinates u of θ, up to constants.

    The network gets θ itself where it has finite bounds, scaled to standard deviation 1 under the prior, and u
    elsewhere.

    Args:
        net: f.
        bounded: Which parameters have two finite bounds ``(d,)``.
    """

    bounded: Tensor

    def __init__(self, net: nn.Module, bounded: Tensor) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("bounded", bounded)

    def forward(self, u: Tensor, condition: Tensor) -> Tensor:
        """Energies ``(N,)`` of u ``(N, d)`` at features of data ``(N, p)``."""
        return 0.5 * u.square().sum(1) + self.tilt(u, condition)

    def tilt(self, u: Tensor, condition: Tensor) -> Tensor:
        """f ``(N,)`` of u ``(N, d)`` at features of data ``(N, p)``, or of T trials ``(N, T, p)``, which are summed."""
        features = torch.where(self.bounded, SPREAD * torch.erf(u / math.sqrt(2)), u)
        if condition.ndim == 2:
            return self.net(features, condition)  # type: ignore[no-any-return]
        trials = condition.shape[1]
        each = self.net(features.repeat_interleave(trials, 0), condition.flatten(0, 1))
        return each.view(-1, trials).sum(1)  # type: ignore[no-any-return]
