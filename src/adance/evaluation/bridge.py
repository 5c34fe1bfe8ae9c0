"""The path of laws from a known base to the model, along which chains are annealed (Neal 2001)."""

import torch
from torch import Tensor

from adance.energies.analytic import Density, Uniform
from adance.energies.energy import Energy, evaluate
from adance.errors import InputError


class Bridge:
    """Laws ``p_β ∝ p₀^{1−β} exp(−βE/T)``, from the base p₀ at β = 0 to the model at β = 1.

    Between a uniform base and the model all laws live in the base's box. Chains need no walls there: the energy is
    continued to all of space by reflection, ``E(fold(x))``, and ``fold`` of a chain of the continued law is a chain of
    the law in the box.

    Args:
        energy: The model's energy ``(B, *event) -> (B,)``.
        base: A normalized law with exact samples.
        temperature: T of the model.

    Raises:
        InputError: ``temperature`` is not above 0.
    """

    def __init__(self, energy: Energy, base: Density, temperature: float = 1.0) -> None:
        if not temperature > 0:
            raise InputError(f"a density exp(−E/T) needs T above 0, got {temperature}")
        self.model, self.base, self.temperature = energy, base, temperature
        self.box = (base.low, base.high) if isinstance(base, Uniform) else None

    def place(self, x: Tensor) -> Tensor:
        """The positions of chains at ``x`` ``(B, *event)``: unchanged, or reflected into the box."""
        if self.box is None:
            return x
        low, high = self.box
        turn = torch.remainder((x - low) / (high - low), 2)
        return low + (high - low) * (1 - (1 - turn).abs())

    def gap(self, x: Tensor) -> Tensor:
        """``−E(x)/T − log p₀(x)`` ``(B,)``, the derivative of the log-density in β, float64."""
        x = self.place(x)
        return -evaluate(self.model, x).double() / self.temperature - self._log_base(x).double()

    def at(self, beta: float) -> Energy:
        """``−log p̃_β``, an energy at temperature 1."""

        def energy(x: Tensor) -> Tensor:
            x = self.place(x)
            model = evaluate(self.model, x) * (beta / self.temperature)
            return model if beta == 1 else model - (1 - beta) * self._log_base(x)

        return energy

    def _log_base(self, x: Tensor) -> Tensor:
        if self.box is None:
            return self.base.log_prob(x)
        return x.new_full((len(x),), -float((self.box[1] - self.box[0]).log().sum()))
