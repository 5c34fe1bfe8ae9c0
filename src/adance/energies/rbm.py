"""The restricted Boltzmann machine (Smolensky 1986; thesis 2.2.2)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from adance.configurable import Configurable
from adance.energies.binary import (
    UnitKind,
    all_states,
    count_units,
    draw_units,
    flatten_units,
    log_sum_units,
    low_value,
)
from adance.energies.boltzmann import refuse_temperature
from adance.errors import InputError


class RBM(Configurable, nn.Module):
    """The free energy of ``E(v, h) = −(vᵀWh + aᵀv + bᵀh)``, as an energy of v.

    ``F(v) = −log Σₕ exp(−E(v, h)) = −aᵀv − Σⱼ softplus(bⱼ + vᵀwⱼ)`` for bits (0/1); for spins (±1) softplus becomes
    log 2cosh. The units of one layer are independent given the other: hⱼ is 1 with log-odds ``bⱼ + vᵀwⱼ`` for bits and
    twice that for spins.

    Args:
        event_shape: Shape of one visible event.
        hidden: Number of hidden units.
        units: ``bit`` (0/1) or ``spin`` (±1), for both layers.
        std: Standard deviation of the initial weights.
        generator: Source of the initial weights; by default torch's global one.

    Raises:
        InputError: ``hidden`` is below 1, or ``std`` below 0.
    """

    def __init__(
        self,
        event_shape: Sequence[int],
        hidden: int = 16,
        units: UnitKind = "bit",
        std: float = 0.01,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.init_args["generator"] = None
        if hidden < 1 or std < 0:
            raise InputError(f"an RBM needs hidden ≥ 1 and std ≥ 0, got {hidden=} and {std=}")
        self.event_shape, self.low = tuple(event_shape), low_value(units)
        visible = count_units(self.event_shape)
        self.weight = nn.Parameter(std * torch.randn(visible, hidden, generator=generator))
        self.visible_bias = nn.Parameter(torch.zeros(visible))
        self.hidden_bias = nn.Parameter(torch.zeros(hidden))

    def forward(self, v: Tensor) -> Tensor:
        """Free energies ``F(v)`` ``(B,)`` of ``v`` ``(B, *event)``."""
        flat = self.flatten(v)
        return -flat @ self.visible_bias - log_sum_units(flat @ self.weight + self.hidden_bias, self.low).sum(1)

    def joint_energy(self, v: Tensor, h: Tensor) -> Tensor:
        """``E(v, h)`` ``(B,)`` of ``v`` ``(B, *event)`` and ``h`` ``(B, hidden)``."""
        flat = self.flatten(v)
        return -((flat @ self.weight) * h).sum(1) - flat @ self.visible_bias - h @ self.hidden_bias

    def hidden_free_energy(self, h: Tensor) -> Tensor:
        """``−log Σᵥ exp(−E(v, h))`` ``(B,)`` of ``h`` ``(B, hidden)``."""
        return -h @ self.hidden_bias - log_sum_units(h @ self.weight.T + self.visible_bias, self.low).sum(1)

    def hidden_logits(self, v: Tensor) -> Tensor:
        """Log-odds ``(B, hidden)`` that each hidden unit is 1 given ``v`` ``(B, *event)``."""
        return (1 - self.low) * (self.flatten(v) @ self.weight + self.hidden_bias)

    def visible_logits(self, h: Tensor) -> Tensor:
        """Log-odds ``(B, *event)`` that each visible unit is 1 given ``h`` ``(B, hidden)``."""
        return (1 - self.low) * (h @ self.weight.T + self.visible_bias).view(-1, *self.event_shape)

    def conditional_logits(self, x: Tensor, units: Tensor | None = None) -> Tensor:
        """Log-odds that a visible unit is 1 given the other visible ones, the hidden ones summed out.

        ``(B, m)`` for ``units`` ``(m,)``, else in the shape of ``x`` ``(B, *event)``.
        """
        flat = self.flatten(x)
        chosen = torch.arange(flat.shape[1], device=x.device) if units is None else units
        w = self.weight[chosen]
        others = (flat @ self.weight + self.hidden_bias)[:, None] - flat[:, chosen, None] * w
        high, low = (log_sum_units(others + value * w, self.low).sum(2) for value in (1.0, self.low))
        logits = (1 - self.low) * self.visible_bias[chosen] + high - low
        return logits.view(x.shape) if units is None else logits

    def blocks(self) -> list[Tensor]:
        """One set for each visible unit: with the hidden ones summed out, all depend on each other."""
        return list(torch.arange(len(self.visible_bias), device=self.visible_bias.device)[:, None])

    @torch.no_grad()
    def block_gibbs(self, x: Tensor, generator: torch.Generator | None = None, temperature: float = 1.0) -> Tensor:
        """``v`` ``(B, *event)`` after h was drawn given v, and then v given h.

        Raises:
            InputError: The temperature is not 1.
        """
        refuse_temperature(self, temperature)
        h = draw_units(self.hidden_logits(x), self.low, generator)
        return draw_units(self.visible_logits(h), self.low, generator).view(x.shape)

    def log_partition(self, chunk: int = 2**14) -> Tensor:
        """Exact ``log Z``, by enumeration of the smaller layer in chunks; differentiable.

        Raises:
            InputError: The smaller layer has more than 24 units.
        """
        visible, hidden = self.weight.shape
        free = self.hidden_free_energy if hidden <= visible else self.forward
        states = all_states(min(visible, hidden), self.low, self.weight)
        return torch.cat([-free(part) for part in torch.split(states, chunk)]).logsumexp(0)

    def log_prob(self, v: Tensor) -> Tensor:
        """Exact log-likelihoods ``(B,)`` of ``v`` ``(B, *event)``: ``−F(v) − log Z``."""
        return -self.forward(v) - self.log_partition()

    def flatten(self, v: Tensor) -> Tensor:
        """``v`` ``(B, *event)`` as ``(B, visible)``.

        Raises:
            InputError: Events have another number of units.
        """
        return flatten_units(v, len(self.visible_bias), "the RBM's visible layer")


@torch.no_grad()
def fit_visible_bias(rbm: RBM, data: Tensor) -> None:
    """Set the visible biases to the mean of each unit in ``data`` ``(N, *event)``, with one pseudo-count; ignores W.

    Training then starts from the best model of independent units.
    """
    share = (rbm.flatten(data).to(rbm.weight) - rbm.low) / (1 - rbm.low)
    share = (share.sum(0) + 0.5) / (len(share) + 1)
    rbm.visible_bias.copy_(share.logit() / (1 - rbm.low))
