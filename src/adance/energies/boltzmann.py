"""The general Boltzmann machine (thesis 2.2.2), with or without hidden units."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from adance.configurable import Configurable
from adance.energies.binary import UnitKind, all_states, count_units, flatten_units, flip_logits
from adance.energies.pairwise import Pairwise
from adance.errors import InputError


class Boltzmann(Configurable, nn.Module):
    """A fully connected model of visible units v and hidden units h, as an energy of v.

    ``E(v, h)`` is the pairwise energy of ``x = (v, h)``, visible units first: :attr:`joint`. As an energy of v the
    model is the free energy ``F(v) = −log Σₕ exp(−E(v, h))``, by enumeration of h; without hidden units ``F = E``.
    With too many hidden units to enumerate, sample the model and estimate its gradient through :attr:`joint`.

    Args:
        event_shape: Shape of one visible event.
        hidden: Number of hidden units.
        units: ``spin`` (±1) or ``bit`` (0/1), for both layers.
        std: Standard deviation of the initial couplings.
        generator: Source of the initial couplings; by default torch's global one.

    Raises:
        InputError: ``hidden`` or ``std`` is below 0.
    """

    def __init__(
        self,
        event_shape: Sequence[int],
        hidden: int = 0,
        units: UnitKind = "bit",
        std: float = 0.01,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.init_args["generator"] = None
        if hidden < 0 or std < 0:
            raise InputError(f"a Boltzmann machine needs hidden ≥ 0 and std ≥ 0, got {hidden=} and {std=}")
        self.event_shape = tuple(event_shape)
        self.visible, self.hidden = count_units(self.event_shape), hidden
        self.joint = Pairwise((self.visible + hidden,), units)
        self.low = self.joint.low
        with torch.no_grad():
            upper = (std * torch.randn(self.joint.weight.shape, generator=generator)).triu(1)
            self.joint.weight.copy_(upper + upper.T)

    def forward(self, v: Tensor) -> Tensor:
        """Free energies ``F(v)`` ``(B,)`` of ``v`` ``(B, *event)``.

        Raises:
            InputError: There are more than 20 hidden units.
        """
        flat = self._flatten(v)
        if self.hidden == 0:
            return self.joint(flat)  # type: ignore[no-any-return]
        return -self._log_weights(flat).logsumexp(1)

    def joint_energy(self, v: Tensor, h: Tensor) -> Tensor:
        """``E(v, h)`` ``(B,)`` of ``v`` ``(B, *event)`` and ``h`` ``(B, hidden)``."""
        return self.joint(torch.cat([self._flatten(v), h], 1))  # type: ignore[no-any-return]

    def conditional_logits(self, x: Tensor, units: Tensor | None = None) -> Tensor:
        """Log-odds that a visible unit is 1 given the other visible ones, the hidden ones summed out.

        ``(B, m)`` for ``units`` ``(m,)``, else in the shape of ``x`` ``(B, *event)``. For log-odds given also the
        hidden units use ``joint.conditional_logits``.
        """
        if self.hidden:
            return flip_logits(self, x, units, self.low)
        logits = self.joint.conditional_logits(self._flatten(x), units)
        return logits.view(x.shape) if units is None else logits

    def blocks(self) -> list[Tensor]:
        """One set for each visible unit."""
        return self.joint.blocks()[: self.visible]

    def hidden_means(self, v: Tensor) -> Tensor:
        """``E[h | v]`` ``(B, hidden)``."""
        return self._log_weights(self._flatten(v)).softmax(1) @ self._hidden_states()

    @torch.no_grad()
    def block_gibbs(self, x: Tensor, generator: torch.Generator | None = None, temperature: float = 1.0) -> Tensor:
        """``v`` ``(B, *event)`` after h was drawn given v, and then every visible unit in turn given all the others.

        Raises:
            InputError: There are hidden units and the temperature is not 1.
        """
        flat = self._flatten(x)
        if self.hidden:
            refuse_temperature(self, temperature)
            flat = torch.cat([flat, self._draw_hidden(flat, generator)], 1)
        return self.joint.sweep(flat, self.blocks(), generator, temperature)[:, : self.visible].reshape(x.shape)

    def _draw_hidden(self, flat: Tensor, generator: torch.Generator | None) -> Tensor:
        which = torch.multinomial(self._log_weights(flat).softmax(1), 1, generator=generator).squeeze(1)
        return self._hidden_states()[which]

    def _log_weights(self, flat: Tensor) -> Tensor:
        """``−E(v, h)`` ``(B, 2^hidden)`` for every h."""
        states = self._hidden_states()
        rows = self.joint.symmetric()
        bias, v = self.joint.bias, self.visible  # visible units come first
        of_v = 0.5 * ((flat @ rows[:v, :v]) * flat).sum(1) + flat @ bias[:v]
        of_h = 0.5 * ((states @ rows[v:, v:]) * states).sum(1) + states @ bias[v:]
        return of_v[:, None] + of_h + (flat @ rows[:v, v:]) @ states.T

    def _hidden_states(self) -> Tensor:
        if self.hidden > 20:
            raise InputError(
                f"{self.hidden} hidden units are too many to enumerate (at most 20): use the joint energy, .joint"
            )
        return all_states(self.hidden, self.low, self.joint.bias)

    def _flatten(self, v: Tensor) -> Tensor:
        return flatten_units(v, self.visible, "the visible layer")


def refuse_temperature(energy: nn.Module, temperature: float) -> None:
    """Check that T is 1: block Gibbs through hidden units samples from ``exp(−F)``, which has no other temperature.

    Raises:
        InputError: The temperature is not 1.
    """
    if temperature != 1:
        raise InputError(
            f"block Gibbs through the hidden units of {type(energy).__name__} samples at temperature 1, "
            f"not {temperature}: divide its weights and biases by the temperature instead"
        )
