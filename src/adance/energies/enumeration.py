"""Exact answers for small models of binary units, by enumeration of all states."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from adance.energies.binary import UnitKind, all_states, count_units, low_value
from adance.energies.energy import Energy, eval_mode, evaluate
from adance.errors import InputError


@dataclass(frozen=True, eq=False)
class Enumerated:
    """The distribution ``exp(−E/T)/Z`` of n binary units, over all 2ⁿ states.

    Attributes:
        states: ``(2ⁿ, *event)``, counted in binary with unit 0 the highest digit.
        log_probs: Normalized log-probabilities ``(2ⁿ,)``.
        log_z: log Z, one number.
        low: The lower value of a unit.
    """

    states: Tensor
    log_probs: Tensor
    log_z: Tensor
    low: float

    @property
    def probs(self) -> Tensor:
        """Probabilities ``(2ⁿ,)``."""
        return self.log_probs.exp()

    def mean(self) -> Tensor:
        """``E[x]`` ``(*event)``; for bits the marginal probabilities of 1."""
        return torch.einsum("s,s...->...", self.probs, self.states)

    def second_moments(self) -> Tensor:
        """``E[xᵢxⱼ]`` ``(n, n)`` over the flattened event."""
        flat = self.states.flatten(1)
        return flat.T @ (self.probs[:, None] * flat)

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalized log-probabilities ``(B,)`` of ``x`` ``(B, *event)``."""
        return self.log_probs[self.index(x)]

    def index(self, x: Tensor) -> Tensor:
        """The index of the state of each row of ``x`` ``(B, *event)``: ``(B,)``."""
        bits = (x.flatten(1) > self.low).to(torch.int64)
        digits = torch.arange(bits.shape[1] - 1, -1, -1, device=x.device)
        return (bits << digits).sum(1)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, *event)``."""
        if n == 0:
            return self.states[:0]
        return self.states[torch.multinomial(self.probs, n, replacement=True, generator=generator)]


def enumerate_distribution(
    energy: Energy,
    event_shape: Sequence[int],
    units: UnitKind = "bit",
    temperature: float = 1.0,
    like: Tensor | None = None,
) -> Enumerated:
    """The exact distribution of an energy of at most 20 binary units; differentiable in its parameters.

    Args:
        energy: Any callable ``(B, *event) -> (B,)``.
        event_shape: Shape of one event.
        units: ``bit`` (0/1) or ``spin`` (±1).
        temperature: T > 0.
        like: A tensor with the dtype and device of the states; by default the energy's first parameter.

    Raises:
        InputError: There are more than 20 units, or ``temperature`` is not above 0.
    """
    n, low = count_units(event_shape), low_value(units)
    if not temperature > 0:
        raise InputError(f"enumeration needs temperature > 0, got {temperature}")
    if like is None and isinstance(energy, nn.Module):
        like = next(energy.parameters(), None)
    states = all_states(n, low, like, most=20).view(-1, *event_shape)
    with eval_mode(energy):
        scores = -evaluate(energy, states) / temperature
    log_z = scores.logsumexp(0)
    return Enumerated(states, scores - log_z, log_z, low)


def log_likelihood(energy: Energy, x: Tensor, units: UnitKind = "bit", temperature: float = 1.0) -> Tensor:
    """Exact mean log-likelihood of ``x`` ``(B, *event)``, one number: ``−mean E(x)/T − log Z``.

    Its gradient in the energy's parameters is the likelihood gradient (thesis 2.4), with both phases exact.
    """
    distribution = enumerate_distribution(energy, x.shape[1:], units, temperature, like=x)
    return -evaluate(energy, x).mean() / temperature - distribution.log_z
